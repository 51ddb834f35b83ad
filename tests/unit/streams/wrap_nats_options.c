#include "wrap_nats_options.h"
#include <inttypes.h>
#include <stdio.h>

played_option_fn *played_option;

static natsStatus set_text(const char *name, const char *value)
{
    return played_option(name, value);
}

static natsStatus set_two(const char *name, const char *first, const char *second)
{
    char text[300];
    (void)snprintf(text, sizeof text, "%s %s", first, second);
    return set_text(name, text);
}

static natsStatus set_number(const char *name, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    return set_text(name, text);
}

natsStatus __wrap_natsOptions_SetAllowReconnect(natsOptions *options, bool value)
{
    (void)options;
    return set_number("AllowReconnect", value);
}

natsStatus __wrap_natsOptions_SetReconnectBufSize(natsOptions *options, int value)
{
    (void)options;
    return set_number("ReconnectBufSize", value);
}

natsStatus __wrap_natsOptions_SetTimeout(natsOptions *options, int64_t value)
{
    (void)options;
    return set_number("Timeout", value);
}

natsStatus __wrap_natsOptions_SetSendAsap(natsOptions *options, bool value)
{
    (void)options;
    return set_number("SendAsap", value);
}

natsStatus __wrap_natsOptions_SetPingInterval(natsOptions *options, int64_t value)
{
    (void)options;
    return set_number("PingInterval", value);
}

natsStatus __wrap_natsOptions_SetMaxPingsOut(natsOptions *options, int value)
{
    (void)options;
    return set_number("MaxPingsOut", value);
}

natsStatus __wrap_natsOptions_SetSecure(natsOptions *options, bool value)
{
    (void)options;
    return set_number("Secure", value);
}

natsStatus __wrap_natsOptions_LoadCATrustedCertificates(natsOptions *options, const char *file)
{
    (void)options;
    return set_text("CATrustedCertificates", file);
}

natsStatus __wrap_natsOptions_LoadCertificatesChain(natsOptions *options, const char *file, const char *key)
{
    (void)options;
    return set_two("CertificatesChain", file, key);
}

natsStatus __wrap_natsOptions_SetCustomInboxPrefix(natsOptions *options, const char *value)
{
    (void)options;
    return set_text("CustomInboxPrefix", value);
}

natsStatus __wrap_natsOptions_SetName(natsOptions *options, const char *value)
{
    (void)options;
    return set_text("Name", value);
}

natsStatus __wrap_natsOptions_SetURL(natsOptions *options, const char *value)
{
    (void)options;
    return set_text("URL", value);
}

natsStatus __wrap_natsOptions_SetExpectedHostname(natsOptions *options, const char *value)
{
    (void)options;
    return set_text("ExpectedHostname", value);
}

natsStatus __wrap_natsOptions_SetUserCredentialsFromFiles(natsOptions *options, const char *file,
                                                          const char *seed)
{
    (void)options;
    return seed == NULL ? set_text("UserCredentials", file) : set_two("UserCredentials", file, "and a seed");
}
