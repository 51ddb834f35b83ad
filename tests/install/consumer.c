/* A user's program, built against an installed thole by consumer.sh. It needs no server. */
#include <stdio.h>
#include <string.h>
#include <thole/activity.h>
#include <thole/client.h>
#include <thole/orchestration.h>
#include <thole/program.h>

int main(void)
{
    thole_error err = {0};
    thole_status const status = thole_fail(&err, THOLE_INVALID, "%s", "as asked");
    if (status != THOLE_INVALID || strcmp(err.text, "as asked") != 0)
        return 1;
    if (!thole_slice_equal(thole_slice_from("abc"), THOLE_STR("abc")))
        return 1;
    printf("consumer ok: %s\n", thole_status_name(status));
    return 0;
}
