#include "learn/pair_logits.h"

#include <utility>

#include "learn/parallel.h"
#include "nn/kernels/lanes.h"

namespace kibitz::learn {
namespace {

using nn::kLanes;
using nn::Lanes;
using nn::Load;
using nn::Store;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Classes whose weights' gradients are one piece of work.
constexpr int64_t kClasses = 128;

// The sum of weight * (a + b).
float DotOfSum(const float* weight, const float* a, const float* b, int64_t size) {
  Lanes sum{};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) sum += Load(weight + i) * (Load(a + i) + Load(b + i));
  float rest = 0;
  for (; i < size; ++i) rest += weight[i] * (a[i] + b[i]);
  return nn::Sum(sum) + rest;
}

// a += factor * weight, and b likewise. They may be the same.
void AddToBoth(const float* weight, float factor, float* a, float* b, int64_t size) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const Lanes add = Load(weight + i) * factor;
    Store(a + i, Load(a + i) + add);
    Store(b + i, Load(b + i) + add);
  }
  for (; i < size; ++i) {
    const float add = weight[i] * factor;
    a[i] += add;
    b[i] += add;
  }
}

// out += factor * (a + b).
void AddSum(const float* a, const float* b, float factor, float* out, int64_t size) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Store(out + i, Load(out + i) + (Load(a + i) + Load(b + i)) * factor);
  }
  for (; i < size; ++i) out[i] += (a[i] + b[i]) * factor;
}

struct Places {
  std::vector<int64_t> begins;
  std::shared_ptr<const PairRows> rows;

  int64_t blocks() const { return static_cast<int64_t>(begins.size()); }
  int64_t First(int64_t block, int64_t m) const {
    return begins[static_cast<size_t>(block)] + rows->first[static_cast<size_t>(m)];
  }
  int64_t Second(int64_t block, int64_t m) const {
    return begins[static_cast<size_t>(block)] + rows->second[static_cast<size_t>(m)];
  }
};

struct PairFunction : torch::autograd::Function<PairFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        std::shared_ptr<Places> places) {
    const auto rows = x.contiguous();
    const auto classes = weight.contiguous();
    const int64_t count = classes.size(0);
    const int64_t width = classes.size(1);
    auto out = torch::empty({places->blocks(), count}, rows.options());
    const auto* from = rows.data_ptr<float>();
    const auto* w = classes.data_ptr<float>();
    auto* to = out.data_ptr<float>();
    ForEachTask(places->blocks(), [&](int64_t block) {
      for (int64_t m = 0; m < count; ++m) {
        to[block * count + m] = DotOfSum(w + m * width, from + places->First(block, m) * width,
                                         from + places->Second(block, m) * width, width);
      }
    });
    context->save_for_backward({rows, classes});
    context->saved_data["places"] =
        torch::IValue::make_capsule(c10::make_intrusive<Holder>(std::move(places)));
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto holder = context->saved_data["places"].toCapsule();
    const auto& places = static_cast<const Holder&>(*holder).places;
    const auto dout = gradients[0].contiguous();
    const int64_t count = saved[1].size(0);
    const int64_t width = saved[1].size(1);
    auto dx = torch::zeros_like(saved[0]);
    auto dweight = torch::zeros_like(saved[1]);
    const auto* from = saved[0].data_ptr<float>();
    const auto* w = saved[1].data_ptr<float>();
    const auto* g = dout.data_ptr<float>();
    auto* dfrom = dx.data_ptr<float>();
    auto* dw = dweight.data_ptr<float>();
    ForEachTask(places->blocks(), [&](int64_t block) {
      for (int64_t m = 0; m < count; ++m) {
        AddToBoth(w + m * width, g[block * count + m], dfrom + places->First(block, m) * width,
                  dfrom + places->Second(block, m) * width, width);
      }
    });
    ForEachPiece(count, kClasses, [&](int64_t begin, int64_t end) {
      for (int64_t block = 0; block < places->blocks(); ++block) {
        for (int64_t m = begin; m < end; ++m) {
          AddSum(from + places->First(block, m) * width, from + places->Second(block, m) * width,
                 g[block * count + m], dw + m * width, width);
        }
      }
    });
    return {dx, dweight, Tensor()};
  }

  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<Places> held) : places(std::move(held)) {}
    std::shared_ptr<Places> places;
  };
};

}  // namespace

Tensor PairLogits(const Tensor& x, const Tensor& weight, std::vector<int64_t> begins,
                  std::shared_ptr<const PairRows> rows) {
  auto places = std::make_shared<Places>();
  places->begins = std::move(begins);
  places->rows = std::move(rows);
  return PairFunction::apply(x, weight, std::move(places));
}

}  // namespace kibitz::learn
