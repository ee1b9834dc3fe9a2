#include "learn/means.h"

#include <gtest/gtest.h>

namespace kibitz::learn {
namespace {

TEST(MeansTest, WeighsByCountAndKeepsTheOrder) {
  Means means;
  means.Add("loss", 6, 2);
  means.Add("acc", 1, 4);
  means.Add("never", 0, 0);
  Means more;
  more.Add("acc", 3, 4);
  more.Add("loss", 1, 5);
  means += more;
  EXPECT_EQ(means.Values(), (NamedValues{{"loss", 1}, {"acc", 0.5}}));
}

TEST(MeansTest, GoesThroughACheckpoint) {
  Means means;
  means.Add("loss", 1.0 / 3, 7);
  Means back = Means::From(means.ToValue());
  EXPECT_EQ(back.Values(), means.Values());
  back += means;
  EXPECT_EQ(back.Values(), means.Values());
}

}  // namespace
}  // namespace kibitz::learn
