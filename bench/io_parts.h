// The parts of the io bench.
#pragma once

#include "bench/bench.h"

namespace kibitz::bench {

void BenchParquet(Bench& bench);
void BenchJsonl(Bench& bench);
void BenchPt(Bench& bench);
void BenchLc0(Bench& bench);

}  // namespace kibitz::bench
