// lost.cuh: the exponent that lascl_batched.cu keeps of a member that is not finite.
#pragma once

constexpr int LOST = 1 << 20;
