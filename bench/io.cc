// Speed of reading files. Data is made once, under build/bench-data.
#include "bench/bench.h"
#include "bench/io_parts.h"

int main(int argc, char** argv) {
  kibitz::bench::Bench bench("io", argc, argv);
  kibitz::bench::BenchParquet(bench);
  kibitz::bench::BenchJsonl(bench);
  kibitz::bench::BenchPt(bench);
  kibitz::bench::BenchLc0(bench);
  return bench.Finish();
}
