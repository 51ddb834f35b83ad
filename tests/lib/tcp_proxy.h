/*
 * A TCP proxy in front of a server on 127.0.0.1 that does to connections what networks do: holds what goes
 * one way or both, delays it, cuts connections. It knows nothing of what it carries. One thread for each
 * proxy.
 *
 * Nothing that was taken is lost while a connection lives: what is held or late comes afterwards, in order,
 * also what a client had written before it gave the connection up. A network that loses things for good is a
 * stall that ends with a cut.
 */
#ifndef THOLE_TCP_PROXY_H
#define THOLE_TCP_PROXY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tcp_way { TCP_TO_SERVER = 1, TCP_TO_CLIENT = 2, TCP_BOTH = 3 };

struct tcp_proxy;
/* NULL when there is no port, memory or thread for it. */
struct tcp_proxy *tcp_proxy_start(uint16_t server_port);
/* Resets what is open. NULL-safe. */
void tcp_proxy_stop(struct tcp_proxy *proxy);
uint16_t tcp_proxy_port(const struct tcp_proxy *proxy); /* where clients connect */

/* From any thread. In force when they return, for what is open and what comes. */

/* From now on only these ways are held; 0 = none. While one is, new connections get no answer. */
void tcp_proxy_stall(struct tcp_proxy *proxy, enum tcp_way ways);
/* Delays all bytes that come that way from now on. */
void tcp_proxy_delay(struct tcp_proxy *proxy, enum tcp_way ways, uint64_t delay_ms);
/* Resets all connections, and each new one until it heals. What was held is gone. */
void tcp_proxy_cut(struct tcp_proxy *proxy);
/* No stall, no delay, no cut. */
void tcp_proxy_heal(struct tcp_proxy *proxy);

size_t tcp_proxy_connections(struct tcp_proxy *proxy);                /* open at the moment */
uint64_t tcp_proxy_passed(struct tcp_proxy *proxy, enum tcp_way way); /* bytes that went one way, ever */
#endif
