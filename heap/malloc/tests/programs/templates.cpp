// The C++ program of project.sh: templates that load the compiler, and containers of every kind, used in several threads,
// with exceptions and aligned new.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

// Work for the compiler: a sum over an index sequence, for many lengths.
template <std::size_t... I>
constexpr std::uint64_t weights(std::index_sequence<I...>) {
    return ((I * I % 31 + 1) + ... + 0);
}

template <std::size_t Length>
struct Course {
    std::array<std::uint32_t, Length> bricks{};
    static constexpr std::uint64_t weight = weights(std::make_index_sequence<Length>{}) + Course<Length - 1>::weight;
};

template <>
struct Course<0> {
    static constexpr std::uint64_t weight = 0;
};

struct alignas(128) Wide {
    std::uint64_t words[16];
};

using Value = std::variant<std::uint64_t, std::string, std::vector<std::string>, std::shared_ptr<std::map<int, std::string>>>;

static Value value(std::uint64_t seed) {
    switch (seed % 4) {
        case 0: return seed;
        case 1: return std::string(seed % 300, 'a' + static_cast<char>(seed % 26));
        case 2: return std::vector<std::string>(seed % 20, std::to_string(seed) + " bricks in a course");
        default: {
            auto map = std::make_shared<std::map<int, std::string>>();
            for (int key = 0; key < static_cast<int>(seed % 30); key++) (*map)[key * 7 % 31] = std::to_string(seed * key);
            return map;
        }
    }
}

static std::uint64_t size(const Value& value) {
    return std::visit([](const auto& held) -> std::uint64_t {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::uint64_t>) return held;
        else if constexpr (std::is_same_v<Held, std::string>) return held.size();
        else if constexpr (std::is_same_v<Held, std::vector<std::string>>)
            return std::accumulate(held.begin(), held.end(), std::uint64_t{0},
                                   [](std::uint64_t sum, const std::string& text) { return sum + text.size(); });
        else return held->size();
    }, value);
}

static std::uint64_t work(std::uint64_t first) {
    std::unordered_map<std::string, Value> table;
    std::deque<std::unique_ptr<Wide>> wide;
    std::list<std::function<std::uint64_t()>> later;
    std::uint64_t sum = 0;
    for (std::uint64_t seed = first; seed < first + 40000; seed++) {
        table["key " + std::to_string(seed * 2654435761u % 3000)] = value(seed);
        wide.push_back(std::make_unique<Wide>());
        if (reinterpret_cast<std::uintptr_t>(wide.back().get()) % alignof(Wide) != 0) throw std::logic_error("not aligned");
        wide.back()->words[seed % 16] = seed;
        if (wide.size() > 500) wide.pop_front();
        later.emplace_back([held = std::string(seed % 70, 'x'), seed] { return held.size() * seed; });
        if (later.size() > 300) {
            sum += later.front()();
            later.pop_front();
        }
        if (seed % 100 == 0) {
            try {
                throw std::runtime_error("course " + std::to_string(seed));
            } catch (const std::exception& caught) {
                sum += std::string(caught.what()).size();
            }
        }
    }
    for (const auto& entry : table) sum += size(entry.second) * entry.first.size();
    return sum;
}

int main() {
    std::vector<std::uint64_t> sums(4);
    std::vector<std::thread> threads;
    for (std::size_t at = 0; at < sums.size(); at++) threads.emplace_back([&sums, at] { sums[at] = work(at * 1000); });
    for (auto& thread : threads) thread.join();

    std::ostringstream text;
    for (int at = 0; at < 20000; at++) text << "brick " << at << ", ";

    for (const auto sum : sums) std::printf("%llu ", static_cast<unsigned long long>(sum));
    std::printf("%llu %zu\n", static_cast<unsigned long long>(Course<150>::weight), text.str().size());
}
