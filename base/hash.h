/* Hashes that are part of what is recorded (random numbers, delays, request ids): they never change. */
#ifndef THOLE_HASH_H
#define THOLE_HASH_H
#include "thole/types.h"

uint64_t hash_bytes(uint64_t seed, thole_slice bytes);
uint64_t hash_number(uint64_t seed, uint64_t number);
#endif
