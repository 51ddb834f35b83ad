/* Limits and leases of queues that the command asks for and changes, played: for the command alone. */
#ifndef THOLE_WRAP_QUEUE_SETTINGS_H
#define THOLE_WRAP_QUEUE_SETTINGS_H
#endif
