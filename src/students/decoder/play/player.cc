#include "students/decoder/play/player.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "students/decoder/data/weights_file.h"
#include "students/decoder/play/choose.h"
#include "students/decoder/play/model.h"
#include "students/decoder/play/prefix_line.h"
#include "students/decoder/play/thought_process.h"

namespace kibitz::decoder {
namespace {

// Positions and thoughts that share passes: more would need memory and give no more speed.
constexpr size_t kPositionsAtOnce = 16;
constexpr size_t kThoughtsAtOnce = 8;
// Weights up to this size stay in cache from pass to pass. Then each thread has its own thoughts,
// as few as keep their rows in its cache too.
constexpr size_t kCachedBytes = size_t{32} << 20;
constexpr size_t kThoughtsOnThread = 2;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A line that ends with a board, and what was made of it.
struct Question {
  PrefixLine* line;
  const chess::Board* board;
  uint64_t seed;
};

// All lines in one pass; nullptr when stopped.
const float* ReadAll(Model& model, std::span<const Question> questions,
                     const std::stop_token& stop) {
  std::vector<Reading> readings;
  for (const Question& question : questions) question.line->AddUnread(readings);
  return model.Read(readings, stop);
}

std::vector<Prediction> Cancelled(size_t count) {
  Prediction cancelled;
  cancelled.cancelled = true;
  return std::vector<Prediction>(count, cancelled);
}

void ChooseMoves(std::span<const Question> questions, std::span<const float> logits,
                 const PredictOptions& options, std::vector<Prediction>& predictions) {
  for (size_t i = 0; i < questions.size(); ++i) {
    const auto row = logits.subspan(i * kMoveVocabularySize, kMoveVocabularySize);
    const chess::Board& board = *questions[i].board;
    Prediction& prediction = predictions[i];
    prediction.candidates =
        options.legal_only ? LegalCandidates(board, row) : AllCandidates(&board, row);
    if (prediction.candidates.empty()) continue;
    prediction.chosen = Choose(prediction.candidates,
                               {.temperature = options.temperature,
                                .top_k = options.top_k,
                                .seed = questions[i].seed,
                                .position = static_cast<uint64_t>(questions[i].line->size())});
  }
}

// Model::SquareStates of so many boards, from what BoardWanted names of each.
std::vector<std::vector<float>> StatesOf(const Model& model, const float* hidden, size_t boards) {
  const auto width = static_cast<size_t>(model.config().embed_dim);
  const size_t step = BoardWanted(model.config()).size() * width;
  std::vector<std::vector<float>> states;
  for (size_t i = 0; i < boards; ++i) states.push_back(model.SquareStates(hidden + i * step));
  return states;
}

// The values of the chosen moves: wl behind the move, d behind wl. The lines are as before. False
// when stopped. states: of all questions' boards.
bool ReadValues(Model& model, std::span<const Question> questions, const PredictOptions& options,
                std::span<const std::vector<float>> states, std::vector<Prediction>& predictions) {
  std::vector<Question> asked;
  std::vector<PlayedMove> moves;
  std::vector<Prediction*> answers;
  std::vector<int> sizes;
  for (size_t i = 0; i < questions.size(); ++i) {
    if (!predictions[i].chosen) continue;
    asked.push_back(questions[i]);
    moves.push_back({.token = predictions[i].chosen->token, .squares = states[i]});
    answers.push_back(&predictions[i]);
    sizes.push_back(questions[i].line->size());
    questions[i].line->Push(Input::Of(predictions[i].chosen->token));
  }
  const auto count = static_cast<int64_t>(asked.size());
  if (count == 0) return true;
  const float* hidden = ReadAll(model, asked, options.stop);
  if (hidden != nullptr) {
    const std::vector<int> wl = model.WlBuckets(hidden, moves);
    for (size_t i = 0; i < asked.size(); ++i) asked[i].line->Push(Input::Wl(wl[i]));
    hidden = ReadAll(model, asked, options.stop);
    if (hidden != nullptr) {
      const std::vector<int> d = model.DBuckets(hidden, count);
      for (size_t i = 0; i < asked.size(); ++i) {
        answers[i]->value = {.wl = model.WlOf(wl[i]), .d = model.DOf(d[i])};
      }
    }
  }
  for (size_t i = 0; i < asked.size(); ++i) asked[i].line->Truncate(sizes[i]);
  return hidden != nullptr;
}

std::vector<Prediction> Answer(Model& model, std::span<const Question> questions,
                               const PredictOptions& options) {
  const float* hidden = ReadAll(model, questions, options.stop);
  if (hidden == nullptr) return Cancelled(questions.size());
  const auto states = StatesOf(model, hidden, questions.size());
  std::vector<float> logits;
  model.BoardPolicy(hidden, static_cast<int64_t>(questions.size()), logits);
  std::vector<Prediction> predictions(questions.size());
  ChooseMoves(questions, logits, options, predictions);
  if (options.value && !ReadValues(model, questions, options, states, predictions)) {
    for (Prediction& prediction : predictions) prediction.cancelled = true;
  }
  return predictions;
}

}  // namespace

std::unique_ptr<Player> Player::Load(const nn::NetworkOptions& options) {
  return Load(io::ReadModel(options.path), options);
}

std::unique_ptr<Player> Player::Load(const io::ModelFile& file, const nn::NetworkOptions& options) {
  const WeightsFile read = WeightsOf(file, options.num_heads);
  return std::make_unique<Player>(std::make_unique<Model>(read.weights, read.config, options));
}

std::unique_ptr<Player> Player::Random(const NetConfig& config, uint64_t seed,
                                       const nn::NetworkOptions& options) {
  CheckConfig(config);
  return std::make_unique<Player>(
      std::make_unique<Model>(RandomWeights(config, seed), config, options));
}

Player::Player(std::unique_ptr<Model> model) : model_(std::move(model)) {}
Player::~Player() = default;

const NetConfig& Player::config() const { return model_->config(); }
int Player::threads() const { return model_->team().size(); }
size_t Player::memory_bytes() const { return model_->memory_bytes(); }

Prediction Player::Predict(const chess::Board& board, const PredictOptions& options) {
  return std::move(PredictAll({&board, 1}, options).front());
}

std::vector<Prediction> Player::PredictAll(std::span<const chess::Board> boards,
                                           const PredictOptions& options) {
  std::vector<Prediction> predictions;
  std::vector<PrefixLine> lines;
  const size_t batch = std::min(boards.size(), kPositionsAtOnce);
  for (size_t i = 0; i < batch; ++i) lines.emplace_back(*model_, kBoardTokens + 2);
  for (size_t first = 0; first < boards.size(); first += batch) {
    std::vector<Question> questions;
    for (size_t i = first; i < std::min(boards.size(), first + batch); ++i) {
      PrefixLine& line = lines[i - first];
      line.Truncate(0);
      line.PushBoard(BoardTokensOf(boards[i]));
      questions.push_back({.line = &line, .board = &boards[i], .seed = options.seed + i});
    }
    std::ranges::move(Answer(*model_, questions, options), std::back_inserter(predictions));
  }
  return predictions;
}

Thought Player::Think(const chess::Board& root, const ThinkOptions& options,
                      const ThoughtListener& listener) {
  const auto start = std::chrono::steady_clock::now();
  ThoughtProcess process(*model_, root, options, listener);
  double first_seconds = 0;
  while (!process.done()) {
    const float* hidden = model_->Read(process.Next(), options.stop);
    if (hidden == nullptr) {
      process.Cancel();
    } else {
      process.Take(hidden);
    }
    if (first_seconds == 0) first_seconds = SecondsSince(start);
  }
  Thought thought = process.Finish();
  thought.stats.first_seconds = first_seconds;
  thought.stats.seconds = SecondsSince(start);
  return thought;
}

namespace {

// A thought among those that share passes.
struct ActiveThought {
  size_t number = 0;
  std::chrono::steady_clock::time_point start;
  std::unique_ptr<ThoughtProcess> process;
  size_t wanted = 0;  // Hidden states of the pass under way.
  double first_seconds = 0;
};

// One pass for all of them; false when stopped.
bool ReadTogether(Model& model, std::span<ActiveThought> active, const std::stop_token& stop) {
  std::vector<Reading> readings;
  for (ActiveThought& thought : active) {
    thought.wanted = 0;
    for (Reading& reading : thought.process->Next()) {
      thought.wanted += reading.wanted.size();
      readings.push_back(std::move(reading));
    }
  }
  const float* hidden = model.Read(readings, stop);
  if (hidden == nullptr) return false;
  // The heads' own products use other memory than the hidden states.
  for (ActiveThought& thought : active) {
    thought.process->Take(hidden);
    hidden += thought.wanted * static_cast<size_t>(model.config().embed_dim);
    if (thought.first_seconds == 0) thought.first_seconds = SecondsSince(thought.start);
  }
  return true;
}

}  // namespace

namespace {

// The tasks and results of ThinkEach, for workers on several threads. Calls next and finished one
// at a time.
class ThinkQueue {
 public:
  ThinkQueue(const Player::NextTask& next, const Player::Finished& finished, size_t workers)
      : next_(next), finished_(finished), under_way_(workers) {}

  // Nothing when there are no more, or when another worker has fewer thoughts under way.
  std::optional<ActiveThought> Take(Model& model, size_t worker) {
    const std::lock_guard lock(mutex_);
    if (!open_ || under_way_[worker] > *std::ranges::min_element(under_way_)) return std::nullopt;
    const std::optional<ThinkTask> task = next_();
    open_ = task.has_value();
    if (!open_) return std::nullopt;
    ++under_way_[worker];
    static const ThoughtListener silent;
    return ActiveThought{
        .number = begun_++,
        .start = std::chrono::steady_clock::now(),
        .process = std::make_unique<ThoughtProcess>(model, task->root, task->options, silent)};
  }

  void Finish(const ActiveThought& last, size_t worker) {
    Thought thought = last.process->Finish();
    thought.stats.first_seconds = last.first_seconds;
    thought.stats.seconds = SecondsSince(last.start);
    const std::lock_guard lock(mutex_);
    --under_way_[worker];
    finished_(last.number, std::move(thought));
  }

  // No more tasks; with an error, Rethrow throws it.
  void Close(std::exception_ptr error = nullptr) {
    const std::lock_guard lock(mutex_);
    open_ = false;
    if (!error_) error_ = std::move(error);
  }
  void Rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const Player::NextTask& next_;
  const Player::Finished& finished_;
  std::mutex mutex_;
  // Guarded by it.
  std::vector<size_t> under_way_;  // By worker.
  size_t begun_ = 0;
  bool open_ = true;
  std::exception_ptr error_;
};

struct ThinkWorker {
  Model& model;
  ThinkQueue& queue;
  size_t number = 0;
  size_t most = 0;  // Thoughts that share its passes.
  const std::stop_token& stop;

  void Run() const {
    std::vector<ActiveThought> active;
    while (true) {
      while (active.size() < most) {
        std::optional<ActiveThought> begun = queue.Take(model, number);
        if (!begun) break;
        active.push_back(std::move(*begun));
      }
      if (active.empty()) return;
      if (!ReadTogether(model, active, stop)) {
        for (const ActiveThought& thought : active) thought.process->Cancel();
        queue.Close();
      }
      // Not std::ranges::stable_partition, whose result clang 14 cannot compile (fuzz targets).
      const auto ended = std::stable_partition(
          active.begin(), active.end(),
          [](const ActiveThought& thought) { return !thought.process->done(); });
      for (const ActiveThought& last : std::span(ended, active.end())) queue.Finish(last, number);
      active.erase(ended, active.end());
    }
  }
  // Errors go to the queue.
  void RunOnThread() const {
    try {
      Run();
    } catch (...) {
      queue.Close(std::current_exception());
    }
  }
};

}  // namespace

// One for each thread in small networks; else the threads share each pass, so that they read the
// weights once.
std::span<const std::unique_ptr<Model>> Player::Thinkers(bool small) {
  const int threads = model_->team().size();
  if (!small || threads == 1) return {&model_, 1};
  while (std::ssize(thinkers_) < threads) thinkers_.push_back(std::make_unique<Model>(*model_, 1));
  return thinkers_;
}

void Player::ThinkEach(const NextTask& next, const Finished& finished,
                       const std::stop_token& stop) {
  const bool small = model_->layers().memory_bytes() <= kCachedBytes;
  const auto models = Thinkers(small);
  const size_t most = small ? kThoughtsOnThread : kThoughtsAtOnce;
  ThinkQueue queue(next, finished, models.size());
  std::vector<ThinkWorker> workers;
  for (size_t i = 0; i < models.size(); ++i) {
    workers.push_back(
        {.model = *models[i], .queue = queue, .number = i, .most = most, .stop = stop});
  }
  {
    std::vector<std::jthread> threads;
    for (const ThinkWorker& worker : std::span(workers).subspan(1)) {
      threads.emplace_back([&worker] { worker.RunOnThread(); });
    }
    workers.front().RunOnThread();
  }
  queue.Rethrow();
}

std::vector<Thought> Player::ThinkAll(std::span<const chess::Board> roots,
                                      const ThinkOptions& options) {
  std::vector<Thought> thoughts(roots.size());
  size_t begun = 0;
  const auto next = [&]() -> std::optional<ThinkTask> {
    if (begun == roots.size()) return std::nullopt;
    ThinkTask task = {.root = roots[begun], .options = options};
    task.options.seed += begun++;
    return task;
  };
  ThinkEach(
      next, [&](size_t number, Thought thought) { thoughts[number] = std::move(thought); },
      options.stop);
  return thoughts;
}

// --- Games ---

struct GameReader::Parts {
  Model& model;
  chess::Board board;
  int max_moves;
  PrefixLine line;
  std::vector<NodeValue> values;
};

std::unique_ptr<GameReader> Player::Read(const chess::Board& start) {
  const int longest = config().max_seq_len;
  auto parts = std::make_unique<GameReader::Parts>(
      GameReader::Parts{.model = *model_,
                        .board = start,
                        .max_moves = (longest - kBoardTokens) / (kBoardTokens + 3),
                        .line = PrefixLine(*model_, longest + 2),
                        .values = {}});
  parts->line.PushBoard(BoardTokensOf(start));
  return std::unique_ptr<GameReader>(new GameReader(std::move(parts)));
}

GameReader::GameReader(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
GameReader::~GameReader() = default;

int GameReader::max_moves() const { return parts_->max_moves; }
const chess::Board& GameReader::board() const { return parts_->board; }
std::span<const NodeValue> GameReader::values() const { return parts_->values; }

void GameReader::Play(chess::Move move) {
  Parts& parts = *parts_;
  CHECK(chess::IsLegal(parts.board, move));
  if (static_cast<int>(parts.values.size()) >= parts.max_moves) {
    throw Error(
        "the network reads at most {} moves behind a position (max_seq_len {}); start from a later "
        "one",
        parts.max_moves, parts.model.config().max_seq_len);
  }
  const auto read = [&] {
    std::vector<Reading> readings;
    parts.line.AddUnread(readings);
    return parts.model.Read(readings);
  };
  PlayedMove played = {.token = TokenOf(move)};
  std::vector<float> states;
  if (parts.model.config().square_values) {
    parts.line.ReadAgainFrom(parts.line.size() - kBoardTokens);
    states = parts.model.SquareStates(read());
    played.squares = states;
  }
  parts.line.Push(Input::Of(played.token));
  const int wl = parts.model.WlBuckets(read(), {&played, 1}).front();
  parts.line.Push(Input::Wl(wl));
  const int d = parts.model.DBuckets(read(), 1).front();
  parts.line.Push(Input::D(d, parts.model.config().n_buckets));
  parts.values.push_back({.wl = parts.model.WlOf(wl), .d = parts.model.DOf(d)});
  parts.board = parts.board.After(move);
  parts.line.PushBoard(BoardTokensOf(parts.board));
}

Prediction GameReader::Predict(const PredictOptions& options) {
  Parts& parts = *parts_;
  // The last board is read anew where it was read before: its hidden state is asked for.
  parts.line.ReadAgainFrom(parts.line.size() - kBoardTokens);
  const int read = parts.line.read();
  const Question question = {.line = &parts.line, .board = &parts.board, .seed = options.seed};
  Prediction prediction = std::move(Answer(parts.model, {&question, 1}, options).front());
  if (prediction.cancelled) parts.line.ReadAgainFrom(read);
  return prediction;
}

}  // namespace kibitz::decoder
