/* The build id of the object that holds an address: notes as they are, cut off, or of others. The loaded
 * object is played. */
#include "crash_page.h"
#include "thole_cunit.h"
#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>

enum { NOTES_AT = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr), IMAGE_BYTES = NOTES_AT + 400 };

static _Alignas(8) uint8_t image[IMAGE_BYTES];
static size_t notes; /* bytes of notes */
static bool unknown, no_base;

int __wrap_dladdr(const void *address, Dl_info *ret)
{
    CU_ASSERT_PTR_EQUAL(address, (const void *)&notes);
    ret->dli_fbase = no_base ? NULL : image;
    return !unknown;
}

static void add(uint32_t type, const char *name, uint32_t name_bytes, const char *desc, uint32_t desc_bytes)
{
    Elf64_Nhdr const note = {.n_namesz = name_bytes, .n_descsz = desc_bytes, .n_type = type};
    uint8_t *const at = image + NOTES_AT + notes;
    memcpy(at, &note, sizeof note);
    memcpy(at + sizeof note, name, strlen(name));
    memcpy(at + sizeof note + (name_bytes + 3) / 4 * 4, desc, strlen(desc));
    notes += sizeof note + (name_bytes + 3) / 4 * 4 + (desc_bytes + 3) / 4 * 4;
}

/* @p visible: bytes of the notes that the object says it has. */
static const char *id_with(size_t visible, uint16_t type)
{
    static char id[BUILD_ID_BYTES];
    Elf64_Ehdr const elf = {.e_type = type, .e_phoff = sizeof elf, .e_phnum = 2};
    Elf64_Phdr const parts[] = {{.p_type = PT_LOAD, .p_vaddr = 0, .p_memsz = IMAGE_BYTES},
                                {.p_type = PT_NOTE,
                                 .p_vaddr = NOTES_AT + (type == ET_DYN ? 0 : (uintptr_t)image),
                                 .p_memsz = visible}};
    memcpy(image, &elf, sizeof elf);
    memcpy(image + sizeof elf, parts, sizeof parts);
    memset(id, '?', sizeof id);
    CU_ASSERT_PTR_EQUAL(build_id(&notes, id), id);
    return id;
}

static void begin(void)
{
    memset(image, 0, sizeof image);
    notes = 0;
    unknown = no_base = false;
}

/* Each is followed by one that is not the object's any more. */
static void check(const char *row, const char *want)
{
    size_t const own = notes;
    for (int i = 0; i < 4; i++)
        add(NT_GNU_BUILD_ID, "GNU", 4, "\xff\xff\xff\xff", 4);
    CHECK_STR(row, id_with(own, ET_DYN), want);
    CHECK_STR(row, id_with(own, ET_EXEC), want);
}

static void test_where_it_is(void)
{
    begin();
    add(NT_GNU_BUILD_ID, "GNU", 4, "\x01\xab\x30\x04", 4);
    check("the only one", "01ab3004");
    begin();
    add(NT_GNU_ABI_TAG, "GNU", 4, "\x07\x07\x07\x07", 4);
    add(NT_GNU_BUILD_ID, "stapsdt", 8, "\x09\x09", 2);
    add(NT_GNU_BUILD_ID, "XNU", 4, "\x08\x08\x08\x08", 4);
    add(NT_GNU_BUILD_ID, "GNU", 4, "\x11\x22\x33", 3);
    add(NT_GNU_ABI_TAG, "GNU", 4, "\x06", 1);
    check("between others", "112233");
    begin();
    add(NT_GNU_BUILD_ID, "GNU", 4,
        "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16", 22);
    check("a longer one is cut", "0102030405060708090a0b0c0d0e0f1011121314");
}

static void test_where_there_is_none(void)
{
    char id[BUILD_ID_BYTES];
    begin();
    check("no notes", "0");
    begin();
    add(NT_GNU_BUILD_ID, "GNU", 4, "\x01\x02\x03\x04", 4);
    for (size_t visible = 0; visible < notes; visible++)
        CHECK_STR("cut off", id_with(visible, ET_DYN), "0");
    CHECK_STR("whole", id_with(notes, ET_DYN), "01020304");
    begin();
    add(NT_GNU_BUILD_ID, "", UINT32_MAX - 8, "", 0);
    notes = 24;
    check("a name that is longer than all", "0");
    CHECK_STR("no address", build_id(NULL, id), "0");
    unknown = true;
    CHECK_STR("of no object", build_id(&notes, id), "0");
    unknown = false;
    no_base = true;
    CHECK_STR("of an object without a place", build_id(&notes, id), "0");
}

static const struct thole_test tests[] = {{"where it is", test_where_it_is},
                                          {"where there is none", test_where_there_is_none}};
THOLE_TEST_MAIN("build_id", tests)
