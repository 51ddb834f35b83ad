/*
 * A burst of messages in few TCP segments: the socket of a link is corked meanwhile (tcp(7), TCP_CORK).
 * nats.c writes each message with a system call of its own, and each write wakes the server up, unless the
 * kernel gathers them.
 *
 * nats.c does not tell its socket. It is found by its addresses among the descriptors of this process, and
 * duplicated, so that a number that is used again for something else does no harm; nats.c shuts the
 * connection itself down when it closes.
 */
#include "link.h"
#include "memory.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* As text; false: it has none, or is no socket of the internet. */
static bool address_of(int fd, int (*get)(int, struct sockaddr *, socklen_t *), char ret_ip[INET6_ADDRSTRLEN],
                       int *ret_port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    socklen_t len = sizeof address;
    if (get(fd, &address.any, &len) != 0)
        return false;
    bool const v6 = address.any.sa_family == AF_INET6;
    if (!v6 && address.any.sa_family != AF_INET)
        return false;
    *ret_port = ntohs(v6 ? address.v6.sin6_port : address.v4.sin_port);
    const void *const bytes = v6 ? (const void *)&address.v6.sin6_addr : &address.v4.sin_addr;
    return inet_ntop(address.any.sa_family, bytes, ret_ip, INET6_ADDRSTRLEN) != NULL;
}

/* A connected socket with this local address. Two may have the same one, to different servers: then none is
 * taken. */
static int find_socket(DIR *descriptors, const char *ip, int port)
{
    const struct dirent *entry;
    int found = -1, matches = 0;
    while ((entry = readdir(descriptors)) != NULL) {
        char *end, text[INET6_ADDRSTRLEN], peer[INET6_ADDRSTRLEN];
        long const fd = strtol(entry->d_name, &end, 10);
        int at, peer_port;
        if (end == entry->d_name || *end != 0 || !address_of((int)fd, getsockname, text, &at))
            continue;
        if (at == port && strcmp(text, ip) == 0 && address_of((int)fd, getpeername, peer, &peer_port)) {
            found = (int)fd;
            matches++;
        }
    }
    return matches == 1 ? found : -1;
}

/* A duplicate; -1: it cannot be told. */
static int socket_of(natsConnection *nc)
{
    char *ip = NULL;
    int port = 0, found = -1;
    if (natsConnection_GetLocalIPAndPort(nc, &ip, &port) != NATS_OK)
        return -1;
    DIR *const descriptors = opendir("/proc/self/fd");
    if (descriptors != NULL) {
        found = find_socket(descriptors, ip, port);
        (void)closedir(descriptors);
    }
    free(ip);
    return found < 0 ? -1 : fcntl(found, F_DUPFD_CLOEXEC, 0);
}

struct link *link_create(struct connection *connection, natsConnection *nc)
{
    struct link *link = memory_new(sizeof *link);
    *link = (struct link){.nc = nc, .connection = connection, .refs = 1, .socket = socket_of(nc)};
    return link;
}

void link_destroy(struct link *link)
{
    natsConnection_Destroy(link->nc);
    if (link->socket >= 0)
        (void)close(link->socket);
    free(link);
}
