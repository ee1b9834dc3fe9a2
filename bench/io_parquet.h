// The Parquet part of the io bench.
#pragma once

#include "bench/bench.h"

namespace kibitz::bench {

void BenchParquet(Bench& bench);

}  // namespace kibitz::bench
