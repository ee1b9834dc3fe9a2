#include "base/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace kibitz {
namespace {

JobPlace PlaceOf(const std::map<std::string, std::string>& variables) {
  return PlaceInJob([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(JobTest, AloneWithoutALauncher) {
  const JobPlace place = PlaceOf({});
  EXPECT_EQ(place.ranks, 1);
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.launcher, "");
}

TEST(JobTest, ReadsTheLaunchers) {
  JobPlace place = PlaceOf({{"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"OMPI_MCA_orte_hnp_uri", "77.0;tcp://10.0.0.5,192.168.1.2:45123"}});
  EXPECT_EQ(place.launcher, "mpirun");
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.ranks, 4);
  EXPECT_EQ(place.address, "10.0.0.5");
  EXPECT_GE(place.port, 20'000);

  place = PlaceOf({{"SLURM_STEP_NUM_TASKS", "8"},
                   {"SLURM_PROCID", "5"},
                   {"SLURM_STEP_NUM_NODES", "4"},
                   {"SLURM_STEP_NODELIST", "node[03-05,09],other"},
                   {"SLURM_JOB_ID", "12"}});
  EXPECT_EQ(place.launcher, "srun");
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.address, "node03");

  place = PlaceOf(
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(place.launcher, "torchrun");
  EXPECT_EQ(place.address, "head");
  EXPECT_EQ(place.port, 29500);
}

// In an sbatch script itself, without srun, there is one process.
TEST(JobTest, ABatchScriptIsNoStep) {
  EXPECT_EQ(PlaceOf({{"SLURM_JOB_ID", "3"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).ranks,
            1);
}

TEST(JobTest, HostLists) {
  const auto host = [](const std::string& list) {
    return PlaceOf({{"SLURM_STEP_NUM_TASKS", "2"},
                    {"SLURM_PROCID", "0"},
                    {"SLURM_STEP_NODELIST", list}})
        .address;
  };
  EXPECT_EQ(host("a,b"), "a");
  EXPECT_EQ(host("a"), "a");
  EXPECT_EQ(host("gpu[1-4]"), "gpu1");
  EXPECT_EQ(host("gpu[07,9]-ib,x"), "gpu07-ib");
  EXPECT_EQ(host("a,gpu[07,9]"), "a");
}

TEST(JobTest, SaysWhatIsWrong) {
  EXPECT_THAT(
      [] {
        PlaceOf({{"RANK", "2"}, {"WORLD_SIZE", "2"}});
      },
      ::testing::ThrowsMessage<Error>(::testing::HasSubstr("rank 2 of 2 ranks")));
  EXPECT_THAT(
      [] {
        PlaceOf({{"RANK", "x"}, {"WORLD_SIZE", "2"}});
      },
      ::testing::ThrowsMessage<Error>(::testing::HasSubstr("RANK is 'x'")));
}

}  // namespace
}  // namespace kibitz
