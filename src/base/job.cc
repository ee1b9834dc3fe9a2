#include "base/job.h"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace kibitz {
namespace {

// Rank 0 listens here unless MASTER_PORT says otherwise: a port that depends on the job, so that
// two jobs on one machine do not meet.
constexpr int kFirstPort = 20'000;
constexpr int kPorts = 10'000;

int PortOf(std::string_view job) {
  uint32_t hash = 2166136261U;
  for (const char c : job) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619U;
  return kFirstPort + static_cast<int>(hash % kPorts);
}

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  std::string Text(const char* name) const {
    const char* value = environment_(name);
    return value == nullptr ? "" : value;
  }
  bool Has(const char* name) const { return !Text(name).empty(); }
  int Number(const char* name, int min, int max) const {
    const std::optional<int64_t> number = ParseInt(Text(name));
    if (!number || *number < min || *number > max) {
      throw Error("environment variable {} is '{}', expected a whole number from {} to {}", name,
                  Text(name), min, max);
    }
    return static_cast<int>(*number);
  }

 private:
  const Environment& environment_;
};

// "node[03-05,09]" or "a,b" -> "node03", "a"
std::string FirstHost(const std::string& list) {
  const size_t bracket = list.find('[');
  const size_t comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const size_t end = list.find_first_of(",-]", bracket);
  const size_t close = list.find(']', bracket);
  const size_t next = close == std::string::npos ? close : list.find(',', close);
  const std::string suffix =
      close == std::string::npos
          ? ""
          : list.substr(close + 1, next == std::string::npos ? next : next - close - 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) + suffix;
}

// The address in "123.0;tcp://10.0.0.5,192.168.1.2:45123"
std::string AddressIn(const std::string& uri) {
  const size_t start = uri.find("tcp://");
  if (start == std::string::npos) return "";
  const size_t begin = start + 6;
  return uri.substr(begin, uri.find_first_of(",:", begin) - begin);
}

JobPlace FromMpirun(const Variables& variables) {
  JobPlace place;
  place.launcher = "mpirun";
  place.ranks = variables.Number("OMPI_COMM_WORLD_SIZE", 1, 1 << 20);
  place.rank = variables.Number("OMPI_COMM_WORLD_RANK", 0, 1 << 20);
  const bool one_machine =
      variables.Text("OMPI_COMM_WORLD_LOCAL_SIZE") == variables.Text("OMPI_COMM_WORLD_SIZE");
  // Where mpirun runs; rank 0 is there unless a host file says otherwise.
  const std::string head = AddressIn(variables.Text("OMPI_MCA_orte_hnp_uri"));
  if (!one_machine && !head.empty()) place.address = head;
  place.port = PortOf(variables.Text("OMPI_MCA_ess_base_jobid") + variables.Text("PMIX_NAMESPACE") +
                      variables.Text("OMPI_MCA_orte_hnp_uri"));
  return place;
}

JobPlace FromSrun(const Variables& variables) {
  JobPlace place;
  place.launcher = "srun";
  place.ranks = variables.Number("SLURM_STEP_NUM_TASKS", 1, 1 << 20);
  place.rank = variables.Number("SLURM_PROCID", 0, 1 << 20);
  const std::string hosts = variables.Has("SLURM_STEP_NODELIST")
                                ? variables.Text("SLURM_STEP_NODELIST")
                                : variables.Text("SLURM_NODELIST");
  const bool one_machine = variables.Text("SLURM_STEP_NUM_NODES") == "1";
  if (!one_machine && !hosts.empty()) place.address = FirstHost(hosts);
  place.port = PortOf(variables.Text("SLURM_JOB_ID") + "." + variables.Text("SLURM_STEP_ID"));
  return place;
}

JobPlace FromTorchrun(const Variables& variables) {
  JobPlace place;
  place.launcher = "torchrun";
  place.ranks = variables.Number("WORLD_SIZE", 1, 1 << 20);
  place.rank = variables.Number("RANK", 0, 1 << 20);
  place.port = PortOf("torchrun");
  return place;
}

}  // namespace

JobPlace PlaceInJob() {
  return PlaceInJob([](const char* name) -> const char* { return std::getenv(name); });
}

JobPlace PlaceInJob(const Environment& environment) {
  const Variables variables(environment);
  JobPlace place;
  if (variables.Has("OMPI_COMM_WORLD_SIZE")) {
    place = FromMpirun(variables);
  } else if (variables.Has("RANK") && variables.Has("WORLD_SIZE")) {
    place = FromTorchrun(variables);
  } else if (variables.Has("SLURM_STEP_NUM_TASKS") && variables.Has("SLURM_PROCID")) {
    place = FromSrun(variables);
  }
  if (place.rank >= place.ranks) {
    throw Error("{} says this is rank {} of {} ranks; ranks count from 0", place.launcher,
                place.rank, place.ranks);
  }
  if (variables.Has("MASTER_ADDR")) place.address = variables.Text("MASTER_ADDR");
  if (variables.Has("MASTER_PORT")) place.port = variables.Number("MASTER_PORT", 1, 65535);
  return place;
}

}  // namespace kibitz
