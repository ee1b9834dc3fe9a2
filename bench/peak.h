// What the machine could do at best: the yardstick for matrix products.
#pragma once

namespace kibitz::bench {

// Multiplications and additions of floats a second, all cores at once: the best of some rounds of
// about a tenth of a second.
double MeasurePeak(int rounds = 3);

}  // namespace kibitz::bench
