#include "students/decoder/data/train_options.h"

#include <algorithm>

#include "base/error.h"
#include "learn/options/given_model.h"
#include "students/decoder/data/sight.h"
#include "students/decoder/data/tokens.h"
#include "students/decoder/data/weights_file.h"

namespace kibitz::decoder {
namespace {

Fields DataFields(DataOptions& data, Phase phase) {
  Fields fields;
  if (phase == Phase::kPretrain) {
    fields.Add("parquet_dir", data.parquet_dir, "games to train on: a folder or a file",
               {.metavar = "DIR"});
    fields.Add("val_parquet_dir", data.val_parquet_dir, "games for validation: a folder or a file",
               {.metavar = "DIR"});
  } else {
    fields.Add("pretrain_parquet_dir", data.pretrain_parquet_dir,
               "games to train on: a folder or a file", {.metavar = "DIR"});
    fields.Add("variation_parquet_dir", data.variation_parquet_dir,
               "searches to train on: a folder or a file", {.metavar = "DIR"});
    fields.Add("val_pretrain_parquet_dir", data.val_parquet_dir,
               "games for validation: a folder or a file", {.metavar = "DIR"});
    fields.Add("val_variation_parquet_dir", data.val_variation_parquet_dir,
               "searches for validation: a folder or a file", {.metavar = "DIR"});
    fields.Add("variation_ratio", data.stream.variation_ratio,
               "share of samples made from searches; the others are games", {.min = 0, .max = 1});
    fields.AddAll(FieldsOf(data.thinking));
  }
  fields.Add("val_batches", data.val_batches, "batches in each validation", {.min = 1});
  fields.Add("max_seq_len", data.max_seq_len, "max tokens in a sequence",
             {.min = kBoardTokens + 3, .max = 1 << 20});
  fields.Add("skip_board_prob", data.skip_board_prob,
             "probability of leaving out a board of a game (never the first)",
             {.min = 0, .max = 1});
  fields.AddAll(FieldsOf(data.stream));
  return fields;
}

Fields LossFields(LossWeights& loss, Phase phase) {
  Fields fields;
  if (phase == Phase::kPretrain) {
    fields.Add("move_weight", loss.final_move, "weight of the move's loss", {.min = 0});
  } else {
    fields.Add("final_move_weight", loss.final_move, "weight of the final move's loss", {.min = 0});
    fields.Add("thinking_move_weight", loss.thinking_move, "weight of the thinking moves' loss",
               {.min = 0});
  }
  fields.Add("board_weight", loss.board, "weight of the board head's loss", {.min = 0});
  fields.Add("wl_weight", loss.wl, "weight of the win-minus-loss loss", {.min = 0});
  fields.Add("d_weight", loss.d, "weight of the draw loss", {.min = 0});
  if (phase == Phase::kFinetune) {
    fields.Add("instinct_weight", loss.instinct,
               "weight of the loss of the move before a thought (data.instinct_target)",
               {.min = 0});
    fields.Add("piece_moves_weight", loss.piece_moves,
               "weight of the loss of a piece's moves (data.piece_moves)", {.min = 0});
    fields.Add("threats_weight", loss.threats,
               "weight of the loss of the opponent's moves (data.square_moves)", {.min = 0});
    fields.Add("branch_wl_weight", loss.branch_wl,
               "weight of the win-minus-loss loss of branches (data.branch_values)", {.min = 0});
    fields.Add("early_end_weight", loss.early_end,
               "weight of the final move's loss behind variations (data.early_ends)", {.min = 0});
    fields.Add("legal_weight", loss.legal,
               "weight of the loss of illegal moves (needs data.soft_targets, data.legal_share)",
               {.min = 0});
  }
  return fields;
}

}  // namespace

ThinkingOptions DataOptions::Thinking() const {
  ThinkingOptions options = thinking;
  options.max_seq_len = max_seq_len;
  return options;
}

TrainOptions::TrainOptions(Phase which) : phase(which) {
  if (phase == Phase::kPretrain) {
    run_name = "pretrain";
    data.max_seq_len = model.max_seq_len = 256;
    data.skip_board_prob = 0.2;
    data.stream.batch_size = 64;
    data.stream.variation_ratio = 0;
    training.learning_rate = 1e-4;
    training.gradient_accumulation_steps = 4;
    training.num_epochs = 100;
    return;
  }
  run_name = "finetune";
  training.gradient_accumulation_steps = 8;
  training.num_epochs = 5;
  training.warmup_steps = 500;
  training.save_every_n_steps = 10000;
}

Fields FieldsOf(TrainOptions& options) {
  Fields fields;
  fields.Add("project_name", options.project_name, "a name for several runs; saved with each");
  fields.Add("run_name", options.run_name, "the run's folder within training.checkpoint_dir");
  fields.AddAll(DataFields(options.data, options.phase), "data");
  fields.AddAll(FieldsOf(options.model), "model");
  fields.AddAll(learn::FieldsOf(options.training), "training");
  fields.Add(
      "training.pretrain_checkpoint", options.pretrain_checkpoint,
      "weights to start from, .pt or .safetensors; they fix the model, but parts can be added",
      {.metavar = "FILE"});
  fields.Add("training.embedding_std", options.embedding_std,
             "standard deviation of a new network's token embedding", {.min = 1e-3, .max = 10});
  fields.AddAll(LossFields(options.loss, options.phase), "loss");
  fields.Add("fresh", options.fresh, "remove the run that is in the folder and start over");
  fields.Add("strict", options.strict,
             "do not resume when data or options that shape the weights changed");
  return fields;
}

void NoteGiven(TrainOptions& options, const Fields& fields) {
  options.given_model = learn::GivenKeys(fields, "model");
}

TrainOptions Completed(TrainOptions options) {
  if (!options.pretrain_checkpoint.empty()) {
    const std::string& path = options.pretrain_checkpoint;
    std::vector<std::string>& given = options.given_model;
    const auto was_given = [&](std::string_view key) {
      return std::find(given.begin(), given.end(), key) != given.end();
    };
    const int heads = was_given("num_heads") ? options.model.num_heads : 0;
    NetConfig of_weights = ReadWeightsFile(path, heads).config;
    // No weight depends on the longest sequence: pretraining's is shorter.
    of_weights.max_seq_len = was_given("max_seq_len")
                                 ? options.model.max_seq_len
                                 : std::max(of_weights.max_seq_len, options.data.max_seq_len);
    for (const NetPart& part : NetParts()) {
      of_weights.*part.flag = of_weights.*part.flag || options.model.*part.flag;
    }
    options.model = learn::ModelOfWeights(options.model, of_weights, given, path);
  }
  CheckOptions(options);
  return options;
}

void CheckOptions(const TrainOptions& options) {
  CheckConfig(options.model);
  if (options.data.max_seq_len > options.model.max_seq_len) {
    throw Error::Usage("data.max_seq_len is {}, but model.max_seq_len only {}",
                       options.data.max_seq_len, options.model.max_seq_len);
  }
  const auto want = [](const std::string& path, std::string_view key, std::string_view what) {
    if (path.empty()) throw Error::Usage("{} is not set: where are the {}?", key, what);
  };
  if (options.phase == Phase::kPretrain) {
    want(options.data.parquet_dir, "data.parquet_dir", "games");
    return;
  }
  const ThinkingOptions& thinking = options.data.thinking;
  if (thinking.square_moves && !thinking.piece_moves) {
    throw Error::Usage("data.square_moves is set, but not data.piece_moves, which it adds to");
  }
  if (thinking.legal_share > 0 && !thinking.soft_targets) {
    throw Error::Usage("data.legal_share is {}, but data.soft_targets is not set",
                       thinking.legal_share);
  }
  if (options.loss.legal > 0 && thinking.legal_share == 0) {
    throw Error::Usage(
        "loss.legal_weight is {}, but data.legal_share is 0: a target names its legal moves only "
        "with a share for each; set data.legal_share to 0.1",
        options.loss.legal);
  }
  const double ratio = options.data.stream.variation_ratio;
  if (ratio < 1) want(options.data.pretrain_parquet_dir, "data.pretrain_parquet_dir", "games");
  if (ratio > 0) want(options.data.variation_parquet_dir, "data.variation_parquet_dir", "searches");
}

uint64_t CountParameters(const NetConfig& c) {
  const auto n = [](int value) { return static_cast<uint64_t>(value); };
  const uint64_t d = n(c.embed_dim);
  const uint64_t layer = 4 * d * d + 3 * d * n(c.d_ff) + 2 * d;
  const uint64_t heads = (d + 1) * (n(c.board_vocab_size) + 2 * n(c.move_vocab_size));
  const uint64_t values =
      2 * ((d + 1) * n(c.value_hidden_size) + (n(c.value_hidden_size) + 1) * n(c.n_buckets));
  const uint64_t fourier = n(c.num_fourier_freq) + (2 * n(c.num_fourier_freq) + 1) * d;
  const uint64_t places =
      (c.board_places ? n(kPlaceRows) * d : 0) + (c.board_before ? n(kBeforeRows) * d : 0) +
      (c.square_sight ? n(kSightRows) * d : 0) + (c.square_attacks ? n(kAttackRows) * d : 0);
  const uint64_t squares = c.square_values ? 2 * d * n(c.value_hidden_size) : 0;
  const uint64_t votes =
      (c.line_votes ? d + 1 : 0) + (c.value_votes ? 2 : 0) + (c.compared_votes ? 3 : 0);
  return places + squares + votes + n(c.vocab_size) * d + n(c.num_layers) * layer + d + heads +
         values + fourier;
}

uint64_t EstimateMemory(const TrainOptions& options) {
  const NetConfig& c = options.model;
  const auto d = static_cast<uint64_t>(c.embed_dim);
  const auto f = static_cast<uint64_t>(c.d_ff);
  const uint64_t tokens = static_cast<uint64_t>(options.data.stream.batch_size) *
                          static_cast<uint64_t>(options.data.max_seq_len);
  // Activations of both passes in float32, 8 bytes an element: a layer keeps its input, both norms,
  // q, k, v, the attention's output and the MLP's hidden values. With gradient checkpointing only
  // the inputs stay, and one layer in full.
  const uint64_t layer = 8 * tokens * (8 * d + 3 * f);
  const uint64_t input = 8 * tokens * d;
  const auto layers = static_cast<uint64_t>(c.num_layers);
  const uint64_t kept =
      options.training.gradient_checkpointing ? layers * input + layer : layers * layer;
  return 16 * CountParameters(c) + kept + (300ULL << 20);
}

}  // namespace kibitz::decoder
