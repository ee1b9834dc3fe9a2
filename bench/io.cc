// Speed of reading files. Data is made once, under build/bench-data or $TMPDIR.
#include "bench/bench.h"
#include "bench/io_parquet.h"

int main(int argc, char** argv) {
  kibitz::bench::Bench bench("io", argc, argv);
  kibitz::bench::BenchParquet(bench);
  return bench.Finish();
}
