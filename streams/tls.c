#include "tls.h"
#include "link.h"
#include "memory.h"
#include "nats_url.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERVER_NAME_BYTES_MAX = 253 }; /* of a name in the DNS */

/* OpenSSL checks no name at all when it is empty, and takes any host of a domain when it begins with a dot.
 */
static thole_status check_server_name(const char *name, thole_error *reterr)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:";
    if (name == NULL)
        return THOLE_OK;
    size_t const len = strlen(name);
    if (len > 0 && len <= SERVER_NAME_BYTES_MAX && name[0] != '.' && strspn(name, allowed) == len)
        return THOLE_OK;
    return thole_fail(
        reterr, THOLE_INVALID,
        "the name that NATS's certificate must be for (--nats-server-name) must be a host name or "
        "an address, without a port or a pattern");
}

static thole_status check_file(const char *path, const char *what, thole_error *reterr)
{
    if (path == NULL || access(path, R_OK) == 0)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "%s %s cannot be read: %s", what, path, strerror(errno));
}

thole_status tls_files_copy(const struct connection_options *options, struct tls_files *ret,
                            thole_error *reterr)
{
    *ret = (struct tls_files){.ca = NULL};
    if ((options->cert == NULL) != (options->key == NULL))
        return thole_fail(reterr, THOLE_INVALID,
                          "a certificate for NATS and its key belong together: %s is given, %s is not",
                          options->cert != NULL ? options->cert : options->key,
                          options->cert != NULL ? "the key" : "the certificate");
    THOLE_TRY(check_file(options->ca, "NATS authorities file", reterr));
    THOLE_TRY(check_file(options->cert, "NATS certificate file", reterr));
    THOLE_TRY(check_file(options->key, "NATS key file", reterr));
    THOLE_TRY(check_server_name(options->server_name, reterr));
    if (options->ca != NULL)
        ret->ca = memory_text(options->ca);
    if (options->cert != NULL)
        ret->cert = memory_text(options->cert);
    if (options->key != NULL)
        ret->key = memory_text(options->key);
    if (options->server_name != NULL)
        ret->server_name = memory_text(options->server_name);
    return THOLE_OK;
}

void tls_files_release(struct tls_files *files)
{
    free(files->ca);
    free(files->cert);
    free(files->key);
    free(files->server_name);
    *files = (struct tls_files){.ca = NULL};
}

/* nats.c drops what was loaded when TLS is switched off, and begins with nothing but the system's authorities
 * when it is switched on again (3.4.1, src/opts.c: natsOptions_SetSecure()). Its texts name the file. */
static natsStatus load_files(const struct tls_files *files, natsOptions *options)
{
    natsStatus status = natsOptions_SetSecure(options, false);
    if (status == NATS_OK)
        status = natsOptions_SetSecure(options, true);
    if (status == NATS_OK && files->ca != NULL)
        status = natsOptions_LoadCATrustedCertificates(options, files->ca);
    if (status == NATS_OK && files->cert != NULL)
        status = natsOptions_LoadCertificatesChain(options, files->cert, files->key);
    return status;
}

/* Of the name alone: what is sent as SNI stays the URL's host (3.4.1, src/conn.c: _makeTLSConn()). */
static natsStatus expect_host(const struct tls_files *files, const char *address, natsOptions *options)
{
    if (files->server_name != NULL)
        return natsOptions_SetExpectedHostname(options, files->server_name);
    char host[NATS_ADDRESS_BYTES];
    (void)snprintf(host, sizeof host, "%s", address);
    *strrchr(host, ':') = 0; /* nats_url_address() put a port there */
    size_t const len = strlen(host);
    bool const bracket = host[0] == '[' && host[len - 1] == ']';
    if (bracket)
        host[len - 1] = 0;
    return natsOptions_SetExpectedHostname(options, bracket ? host + 1 : host);
}

thole_status tls_choose(const struct tls_files *files, const char *url, const char *address,
                        const struct server_info *info, natsOptions *options, thole_error *reterr)
{
    thole_error said = {.status = THOLE_OK};
    bool const asked = nats_url_scheme(url) != NATS_SCHEME_NATS || files->ca != NULL || files->cert != NULL ||
                       files->server_name != NULL;
    if (!info->tls_required && !asked)
        return link_fail(natsOptions_SetSecure(options, false), "NATS server", address, reterr);
    if (info->tls_verify && files->cert == NULL) /* TLS 1.3 would only end the connection, without a word */
        return thole_fail(reterr, THOLE_DENIED,
                          "NATS server %s asks for a certificate: give one with --nats-cert and --nats-key",
                          address);
    natsStatus const status = load_files(files, options);
    if (status == NATS_OK)
        return link_fail(expect_host(files, address, options), "NATS server", address, reterr);
    thole_status const result = link_fail(status, "NATS server", address, &said);
    if (status != NATS_SSL_ERROR)
        return thole_fail(reterr, result, "%s", said.text);
    return thole_fail(reterr, THOLE_DENIED,
                      "%s: the files must be PEM, the key without a password, and the certificate's",
                      said.text);
}
