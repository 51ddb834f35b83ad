/* Gateways of one process that serve one queue each, that of their options: a test knows which one answers.
 */
#ifndef THOLE_WRAP_GATEWAYS_H
#define THOLE_WRAP_GATEWAYS_H
#endif
