/* Valid and invalid values of --http. */
#include "listen_address.h"
#include "thole_cunit.h"

static void test_addresses(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"9464", "127.0.0.1:9464"},
        {"0", "127.0.0.1:0"},
        {"0.0.0.0:9464", "0.0.0.0:9464"},
        {"10.1.2.3:65535", "10.1.2.3:65535"},
        {"[::]:9464", "[::]:9464"},
        {"[::1]:1", "[::1]:1"},
        {"[2001:db8:0:1:2:3:4:5]:80", "[2001:db8:0:1:2:3:4:5]:80"},
        {"", NULL},
        {":9464", NULL},
        {"65536", NULL},
        {"123456", NULL},
        {"94 64", NULL},
        {"-1", NULL},
        {"0x10", NULL},
        {"127.0.0.1", NULL},
        {"127.0.0.1:", NULL},
        {"127.0.0.1:http", NULL},
        {"127.0.0:9464", NULL},
        {"127.0.0.1.1:9464", NULL},
        {"localhost:9464", NULL},
        {"::1:9464", NULL},
        {"[]:9464", NULL},
        {"[::1:9464", NULL},
        {"[127.0.0.1]:9464", NULL},
        {"[2001:0db8:0000:0001:0002:0003:0004:00000000000000000000000005]:80", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sockaddr_storage address;
        char text[LISTEN_ADDRESS_BYTES] = "refused";
        thole_error error = {.status = THOLE_OK};
        if (listen_address_parse(rows[i].text, &address, &error) == THOLE_OK)
            listen_address_format(&address, text);
        else
            CU_ASSERT_EQUAL(error.status, THOLE_INVALID);
        CHECK_STR(rows[i].text, text, rows[i].want == NULL ? "refused" : rows[i].want);
    }
}

static const struct thole_test tests[] = {{"addresses", test_addresses}};
THOLE_TEST_MAIN("listen_address", tests)
