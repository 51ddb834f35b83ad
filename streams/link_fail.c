#include "link.h"
#include <string.h>

thole_status link_fail(natsStatus status, const char *what, const char *name, thole_error *reterr)
{
    const char *said = nats_GetLastError(NULL);
    const char *text = said != NULL && said[0] != 0 ? said : natsStatus_GetText(status);
    const char *place = text[0] == '(' ? strstr(text, "): ") : NULL; /* "(conn.c:4212): " is for others */
    if (place != NULL)
        text = place + 3;
    switch (status) {
    case NATS_OK: return THOLE_OK;
    case NATS_NO_MEMORY: return thole_fail(reterr, THOLE_NOMEM, "%s %s: out of memory", what, name);
    case NATS_MAX_PAYLOAD: return thole_fail(reterr, THOLE_LIMIT, "%s %s: %s", what, name, text);
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED: return thole_fail(reterr, THOLE_DENIED, "%s %s: %s", what, name, text);
    case NATS_NO_RESPONDERS:
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s %s: no responders%s", what, name,
                          strncmp(name, "$JS.", 4) == 0 ? "; is JetStream on and its leader elected?" : "");
    case NATS_INVALID_ARG:
    case NATS_INVALID_SUBJECT: return thole_fail(reterr, THOLE_INVALID, "%s %s: %s", what, name, text);
    case NATS_TIMEOUT: return thole_fail(reterr, THOLE_UNAVAILABLE, "%s %s: no answer in time", what, name);
    default: return thole_fail(reterr, THOLE_UNAVAILABLE, "%s %s: %s", what, name, text);
    }
}

thole_status link_explain_connect(natsStatus status, const char *address, bool creds, thole_error *reterr)
{
    thole_error said = {.status = THOLE_OK};
    thole_status const result = link_fail(status, "NATS server", address, &said);
    if (result == THOLE_DENIED)
        return thole_fail(
            reterr, result,
            "NATS server %s refuses the credentials: check the credentials file, or user and password "
            "in the URL",
            address);
    if (status == NATS_SSL_ERROR || status == NATS_SECURE_CONNECTION_WANTED ||
        status == NATS_SECURE_CONNECTION_REQUIRED)
        return thole_fail(reterr, THOLE_DENIED,
                          "%s: check tls:// in the URL, the trusted authorities (--nats-ca), the name in the "
                          "server's certificate (--nats-server-name), and the own certificate (--nats-cert, "
                          "--nats-key)",
                          said.text);
    if (creds && (status == NATS_ERR || status == NATS_INVALID_ARG))
        return thole_fail(reterr, THOLE_DENIED, "%s: check the credentials file", said.text);
    return thole_fail(reterr, result, "%s", said.text);
}
