#include "tests/support/small_runs.h"

#include <fmt/format.h>

#include <fstream>

#include "tests/support/decoder_records.h"
#include "tests/support/lc0_file.h"
#include "tests/support/policy_rows.h"

namespace kibitz::testing {
namespace {

using Words = SmallRuns::Words;

Words Joined(Words words, const Words& more) {
  words.insert(words.begin(), ProgramPath("kibitz"));
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

constexpr const char* kConfig = R"(run_name: "run"
data:
  pretrain_parquet_dir: "{0}/games.parquet"
  variation_parquet_dir: "{0}/searches.parquet"
  batch_size: 2
  max_seq_len: 300
  variation_ratio: 0.5
  max_variations: 3
  max_depth: 5
model:
  embed_dim: 16
  num_heads: 2
  num_layers: 2
  max_seq_len: 300
  d_ff: 24
  n_buckets: 20
  value_hidden_size: 16
  num_fourier_freq: 8
training:
  learning_rate: 1.0e-3
  gradient_accumulation_steps: 2
  num_epochs: 0
  max_steps: 12
  log_every_n_steps: 2
  save_every_n_steps: 3
  threads: 1
  checkpoint_dir: "{0}"
)";

}  // namespace

SmallRuns::SmallRuns(const Options& options) {
  WriteGames(File("games.parquet"), {.count = 40, .max_plies = 20});
  WriteSearches(searches(), {.count = 40});
  WriteEvaluations({.rows = options.evaluation_rows, .positions = options.evaluation_rows * 2 / 5},
                   File("evals.parquet"), evaluations());
  WriteLc0File(net());
  std::ofstream(games()) << "[White \"A\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 1-0\n\n"
                         << "[White \"B\"]\n\n1. d4 d5 2. c4 e6 3. Nc3 Nf6 0-1\n\n";
  std::ofstream(File("config.yaml")) << fmt::format(kConfig, path());
}

Words SmallRuns::Finetune(const std::string& name, const Words& more) const {
  return Joined({"decoder", "finetune", "--config", File("config.yaml"), "--run-name", name}, more);
}
Words SmallRuns::Precompute(const std::string& name, const Words& more) const {
  return Joined({"policy", "precompute", evaluations(), "--out", File(name), "--memory", "128M",
                 "--threads", "1"},
                more);
}
Words SmallRuns::Merge(const std::string& shards, const std::string& name,
                       const Words& more) const {
  return Joined(
      {"policy", "merge", File(shards), "--out", File(name), "--memory", "128M", "--threads", "1"},
      more);
}
Words SmallRuns::OracleGames(const std::string& name, const Words& more) const {
  return Joined({"oracle", "games", "--net", net(), "--nodes", "4", "--games", "4", "--max-plies",
                 "12", "--random-plies", "4", "--part-games", "1", "--out", File(name)},
                more);
}
Words SmallRuns::OracleVariations(const std::string& name, const Words& more) const {
  return Joined({"oracle", "variations", games(), "--net", net(), "--nodes", "8",
                 "--part-positions", "2", "--out", File(name)},
                more);
}
Words SmallRuns::OracleEvals(const std::string& name, const Words& more) const {
  return Joined({"oracle", "evals", games(), "--net", net(), "--sessions", "nodes=8",
                 "--part-positions", "2", "--out", File(name)},
                more);
}
Words SmallRuns::Generate(const std::string& name, const Words& more) const {
  return Joined({"2048", "generate", "--games", "4", "--depth", "1", "--max-moves", "50",
                 "--threads", "1", "--out", File(name)},
                more);
}
Words SmallRuns::Pack(const std::string& name, const Words& more) const {
  return Joined({"2048", "pack", GoldenPath("twenty48/raws"), "--out", File(name)}, more);
}
Words SmallRuns::ArenaMatch(const std::string& name, const Words& more) const {
  return Joined({"arena", "match", "random", "negamax?depth=1", "--games", "4", "--concurrency",
                 "1", "--max-plies", "20", "--out", File(name)},
                more);
}

}  // namespace kibitz::testing
