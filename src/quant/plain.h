/* SPDX-License-Identifier: MIT */
/* Blocks of 32 from their scales and codes: see plain.c for the layout. q: 32 codes, without sign. */
#ifndef SOTTO_QUANT_PLAIN_H
#define SOTTO_QUANT_PLAIN_H

#include <stdint.h>

void sotto_i_q4_0_pack(float d, const uint8_t * q, uint8_t * block);
void sotto_i_q4_1_pack(float d, float m, const uint8_t * q, uint8_t * block);
void sotto_i_q5_0_pack(float d, const uint8_t * q, uint8_t * block);
void sotto_i_q5_1_pack(float d, float m, const uint8_t * q, uint8_t * block);

#endif
