#include "learn/adamw.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "learn/adamw_update.h"
#include "learn/parallel.h"
#include "learn/weights.h"

namespace kibitz::learn {
namespace {

// Elements of one piece of work.
constexpr int64_t kPiece = 1 << 15;
constexpr int64_t kRowsOfPiece = 1 << 10;  // Rows of a sparse gradient.

// On any device, in torch's operations.
void Update(torch::Tensor parameter, const torch::Tensor& gradient, torch::Tensor exp_avg,
            torch::Tensor exp_avg_sq, const AdamWFactors& f) {
  parameter.mul_(f.decay);
  exp_avg.mul_(f.beta1).add_(gradient, 1 - f.beta1);
  exp_avg_sq.mul_(f.beta2).addcmul_(gradient, gradient, 1 - f.beta2);
  const torch::Tensor divisor = exp_avg_sq.sqrt().div_(f.root_scale).add_(f.epsilon);
  parameter.addcdiv_(exp_avg, divisor, -f.step_size);
}

// A sparse gradient has rows of a contiguous float32 matrix on the CPU, each once.
void UpdateRows(torch::Tensor parameter, const torch::Tensor& gradient, torch::Tensor exp_avg,
                torch::Tensor exp_avg_sq, const AdamWFactors& f) {
  const torch::Tensor coalesced = gradient.coalesce();
  const torch::Tensor rows = coalesced.indices().contiguous();   // (1, N)
  const torch::Tensor values = coalesced.values().contiguous();  // (N, W)
  const int64_t width = parameter.size(1);
  ForEachPiece(rows.size(1), kRowsOfPiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = rows.data_ptr<int64_t>()[i] * width;
      Update(AdamWPiece{parameter.data_ptr<float>() + at, values.data_ptr<float>() + i * width,
                        exp_avg.data_ptr<float>() + at, exp_avg_sq.data_ptr<float>() + at, width,
                        f});
    }
  });
}

bool IsPlain(const torch::Tensor& tensor) {
  return tensor.is_cpu() && tensor.scalar_type() == torch::kFloat32 && tensor.is_contiguous();
}

}  // namespace

AdamW::AdamW(std::vector<torch::Tensor> parameters, const LoopOptions& options)
    : parameters_(std::move(parameters)), options_(options), states_(parameters_.size()) {}

void AdamW::Step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  learning_rate_ = learning_rate;
  std::vector<AdamWPiece> pieces;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    torch::Tensor& parameter = parameters_[i];
    if (!parameter.grad().defined()) continue;
    State& state = states_[i];
    if (!state.exp_avg.defined()) {
      state.exp_avg = torch::zeros_like(parameter);
      state.exp_avg_sq = torch::zeros_like(parameter);
    }
    ++state.step;
    const auto step = static_cast<double>(state.step);
    const torch::Tensor& gradient = parameter.grad();
    const double beta1 = gradient.is_sparse() ? 0 : options_.beta1;
    const AdamWFactors factors{.decay = 1 - learning_rate * options_.weight_decay,
                               .beta1 = beta1,
                               .beta2 = options_.beta2,
                               .step_size = learning_rate / (1 - std::pow(beta1, step)),
                               .root_scale = std::sqrt(1 - std::pow(options_.beta2, step)),
                               .epsilon = options_.epsilon};
    if (gradient.is_sparse()) {
      UpdateRows(parameter, gradient, state.exp_avg, state.exp_avg_sq, factors);
      continue;
    }
    if (!IsPlain(parameter) || !IsPlain(gradient) || !IsPlain(state.exp_avg) ||
        !IsPlain(state.exp_avg_sq)) {
      Update(parameter, gradient, state.exp_avg, state.exp_avg_sq, factors);
      continue;
    }
    for (int64_t at = 0; at < parameter.numel(); at += kPiece) {
      pieces.push_back({parameter.data_ptr<float>() + at, gradient.data_ptr<float>() + at,
                        state.exp_avg.data_ptr<float>() + at,
                        state.exp_avg_sq.data_ptr<float>() + at,
                        std::min(kPiece, parameter.numel() - at), factors});
    }
  }
  // Small parameters go together: a task is worth a thread's while.
  std::vector<size_t> ends;
  int64_t size = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    size += pieces[i].size;
    if (size < kPiece && i + 1 < pieces.size()) continue;
    ends.push_back(i + 1);
    size = 0;
  }
  ForEachTask(static_cast<int64_t>(ends.size()), [&](int64_t task) {
    const auto at = static_cast<size_t>(task);
    for (size_t i = at == 0 ? 0 : ends[at - 1]; i < ends[at]; ++i) Update(pieces[i]);
  });
}

void AdamW::ZeroGradients() {
  for (torch::Tensor& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
}

io::Value AdamW::ToValue() const {
  using io::Value;
  Value::Pairs states;
  Value::Items numbers;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto number = Value::Int(static_cast<int64_t>(i));
    numbers.push_back(number);
    const State& state = states_[i];
    if (!state.exp_avg.defined()) continue;
    const torch::Tensor step = torch::tensor(static_cast<float>(state.step));
    states.emplace_back(
        number, Value::Dict({{Value::String("step"), Value::Of(ToFile(step))},
                             {Value::String("exp_avg"), Value::Of(ToFile(state.exp_avg))},
                             {Value::String("exp_avg_sq"), Value::Of(ToFile(state.exp_avg_sq))}}));
  }
  const Value group =
      Value::Dict({{Value::String("lr"), Value::Float(learning_rate_)},
                   {Value::String("betas"),
                    Value::Tuple({Value::Float(options_.beta1), Value::Float(options_.beta2)})},
                   {Value::String("eps"), Value::Float(options_.epsilon)},
                   {Value::String("weight_decay"), Value::Float(options_.weight_decay)},
                   {Value::String("amsgrad"), Value::Bool(false)},
                   {Value::String("foreach"), Value()},
                   {Value::String("maximize"), Value::Bool(false)},
                   {Value::String("capturable"), Value::Bool(false)},
                   {Value::String("params"), Value::List(std::move(numbers))}});
  return Value::Dict({{Value::String("state"), Value::Dict(std::move(states))},
                      {Value::String("param_groups"), Value::List({group})}});
}

void AdamW::Restore(const io::Value& state, const std::string& place) {
  std::vector<State> states(parameters_.size());
  for (const auto& [key, entry] : state.Get("state").pairs()) {
    const int64_t number = key.AsInt();
    if (number < 0 || number >= static_cast<int64_t>(parameters_.size())) {
      throw Error("{}: optimizer state of parameter {}, but the network has {}", place, number,
                  parameters_.size());
    }
    const torch::Tensor& parameter = parameters_[static_cast<size_t>(number)];
    State& into = states[static_cast<size_t>(number)];
    into.step = static_cast<int64_t>(FromFile(entry.Get("step").AsTensor()).item<double>());
    into.exp_avg = FromFile(entry.Get("exp_avg").AsTensor()).to(parameter.device());
    into.exp_avg_sq = FromFile(entry.Get("exp_avg_sq").AsTensor()).to(parameter.device());
    for (const torch::Tensor& moment : {into.exp_avg, into.exp_avg_sq}) {
      if (moment.sizes() == parameter.sizes()) continue;
      throw Error("{}: optimizer state of parameter {} has another shape than the parameter", place,
                  number);
    }
  }
  states_ = std::move(states);
}

double ClipGradients(const std::vector<torch::Tensor>& parameters, double max_norm) {
  const torch::NoGradGuard no_grad;
  // Of a sparse gradient, its rows; those of several batches are added up first.
  std::vector<torch::Tensor> gradients;
  for (torch::Tensor parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    if (parameter.grad().is_sparse()) parameter.mutable_grad() = parameter.grad().coalesce();
    gradients.push_back(parameter.grad().is_sparse() ? parameter.grad().values()
                                                     : parameter.grad());
  }
  double squares = 0;
  for (const torch::Tensor& gradient : gradients) {
    const double norm = gradient.norm().item<double>();
    squares += norm * norm;
  }
  const double norm = std::sqrt(squares);
  if (max_norm > 0 && std::isfinite(norm) && norm > max_norm) {
    for (torch::Tensor& gradient : gradients) gradient.mul_(max_norm / (norm + 1e-6));
  }
  return norm;
}

}  // namespace kibitz::learn
