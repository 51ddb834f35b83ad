/* Files of a user and a password, or a token: what nats.c gets of them, and that no secret is in an error. */
#include "login.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *user, *password, *token;
    unsigned calls;
} play;
static char kept[3][64];

static const char *keep(unsigned at, const char *text)
{
    (void)snprintf(kept[at], sizeof kept[at], "%s", text == NULL ? "-" : text);
    return kept[at];
}

natsStatus __wrap_natsOptions_SetUserInfo(natsOptions *options, const char *user, const char *password)
{
    (void)options;
    play.user = keep(0, user);
    play.password = keep(1, password);
    play.calls++;
    return NATS_OK;
}

natsStatus __wrap_natsOptions_SetToken(natsOptions *options, const char *token)
{
    (void)options;
    play.token = keep(2, token);
    play.calls++;
    return NATS_OK;
}

#define PAIR "user: and password: belong together, or token: stands alone"

static void test_files(void)
{
    static const struct {
        const char *text;
        thole_status want;
        const char *says; /* user password token, or the error after the path */
    } rows[] = {
        {"user: anna\npassword: SECRET\n", THOLE_OK, "anna SECRET -"},
        {"# of the shop\n\r\n\npassword:SECRET: #1 \r\nuser:\t anna", THOLE_OK, "anna SECRET: #1  -"},
        {"token: SECRET", THOLE_OK, "- - SECRET"},
        {"user: anna\n", THOLE_INVALID, ": " PAIR},
        {"password: SECRET\n", THOLE_INVALID, ": " PAIR},
        {"token: SECRET\nuser: anna\n", THOLE_INVALID, ": " PAIR},
        {"token: SECRET\npassword: SECRET\n", THOLE_INVALID, ": " PAIR},
        {"user: anna\npassword: \n", THOLE_INVALID, ":2: password is empty"},
        {"user: anna\npassword: SECRET\nuser: SECRET\n", THOLE_INVALID, ":3: user stands there twice"},
        {"user: anna\nSECRET\n", THOLE_INVALID, ":2: user:, password: or token: is expected"},
        {"user: anna\npasswort: SECRET\n", THOLE_INVALID, ":2: user:, password: or token: is expected"},
        {"", THOLE_NOT_FOUND, ""},
        {"# user: anna\n", THOLE_NOT_FOUND, ""},
        {"users: anna\n", THOLE_NOT_FOUND, ""},
        {"anna\nuser: anna\n", THOLE_NOT_FOUND, ""},
        {"SUAPUTCCHXSTHNBASBA6HBNFFJ2DFDQEUFEDQPBG2H2ZTVPCVZ6CPXIFOM\n", THOLE_NOT_FOUND, ""},
        {"-----BEGIN NATS USER JWT-----\neyJ0eXAi\n------END NATS USER JWT------\n", THOLE_NOT_FOUND, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char path[] = "/tmp/thole-login.XXXXXX", said[300];
        thole_error err = {.status = THOLE_OK};
        int const fd = mkstemp(path);
        CU_ASSERT_FATAL(fd >= 0 && write(fd, rows[i].text, strlen(rows[i].text)) >= 0);
        close(fd);
        memset(&play, 0, sizeof play);
        CU_ASSERT_EQUAL(login_set(path, NULL, &err), rows[i].want);
        unlink(path);
        CU_ASSERT_EQUAL(play.calls, rows[i].want == THOLE_OK ? 2 : 0);
        if (rows[i].want == THOLE_OK)
            (void)snprintf(said, sizeof said, "%s %s %s", play.user, play.password, play.token);
        else
            (void)snprintf(said, sizeof said, "%s", err.text + (err.text[0] == '\0' ? 0 : strlen(path)));
        CHECK_STR(rows[i].text, said, rows[i].says);
        CU_ASSERT_PTR_NULL(strstr(err.text, "SECRET"));
    }
    thole_error err = {.status = THOLE_OK};
    CU_ASSERT_EQUAL(login_set("/nowhere/at/all", NULL, &err), THOLE_NOT_FOUND);
    CU_ASSERT_EQUAL(login_again("/nowhere/at/all", NULL, &err), THOLE_INVALID);
    CHECK_STR("not any more", err.text,
              "NATS credentials file /nowhere/at/all has no user and password, and no token, any more");
}

static void test_length(void)
{
    for (int more = 0; more < 2; more++) {
        char path[] = "/tmp/thole-login.XXXXXX", text[4096];
        int const fd = mkstemp(path);
        memset(text, 'x', sizeof text);
        memcpy(text, "token: ", 7);
        CU_ASSERT_FATAL(fd >= 0 && write(fd, text, 4095 + (size_t)more) > 0);
        close(fd);
        CU_ASSERT_EQUAL(login_set(path, NULL, NULL), more == 0 ? THOLE_OK : THOLE_INVALID);
        unlink(path);
    }
}

static const struct thole_test tests[] = {{"files", test_files}, {"length", test_length}};
THOLE_TEST_MAIN("login", tests)
