// What the machine could do at best: the yardstick for matrix products.
#pragma once

namespace kibitz::bench {

// Multiplications and additions of floats a second, all cores at once.
double MeasurePeak();

}  // namespace kibitz::bench
