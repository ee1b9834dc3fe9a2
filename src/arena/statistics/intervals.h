// How sure a share, a difference between two players on the same items, or a mean is.
//
//   const Interval share = WilsonInterval(83, 100);      // 0.745 to 0.891
//   const double p = McNemarExact(12, 3);                // 0.035
//   const Resampled gain = PairedBootstrap(differences, {.seed = 1});
#pragma once

#include <cstdint>
#include <span>

namespace kibitz::arena {

struct Interval {
  double low = 0;
  double high = 0;
};

// Wilson's 95% score interval of a share. Without trials it is 0 to 1.
Interval WilsonInterval(int64_t successes, int64_t trials);

// part / whole; 0 of nothing.
double ShareOf(int64_t part, int64_t whole);

// Of items on which exactly one of two players was right, `first` were the first's and `second` the
// second's: the chance of so uneven a split, or a more uneven one, if both are equally good. The
// exact, two-sided test.
double McNemarExact(int64_t first, int64_t second);

struct BootstrapOptions {
  int resamples = 10000;
  uint64_t seed = 1;
};

struct Resampled {
  double mean = 0;
  Interval interval;   // The middle 95% of the means of the resamples.
  double p_value = 1;  // Two-sided: twice the share of means on the other side of 0.
};

// `differences` has one number for each item that both players had.
Resampled PairedBootstrap(std::span<const double> differences,
                          const BootstrapOptions& options = {});

}  // namespace kibitz::arena
