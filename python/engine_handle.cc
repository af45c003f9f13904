#include "engine_handle.h"

namespace toto::python {
namespace {

Engine load_without_lock(const std::string& folder, const EngineOptions& options) {
  const Unlocked unlocked;
  return Engine::load(folder, options);
}

Counters counted_by(const Engine& engine) {
  return {engine.timings(), engine.plans(), engine.replans()};
}

// For `quantiles=[0.1, 0.9]` in a call: a new list of the same constants.
bool same_items(nanobind::handle list, nanobind::handle tuple) {
  if (!PyList_CheckExact(list.ptr()) || !PyTuple_CheckExact(tuple.ptr())) return false;
  const auto given = nanobind::borrow<nanobind::list>(list);
  const auto kept = nanobind::borrow<nanobind::tuple>(tuple);
  if (given.size() != kept.size()) return false;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!given[i].is(kept[i])) return false;
  }
  return true;
}

// Leaks an object of the parent process in a forked child. The engine's threads do not exist there
// and one of them may hold its lock, so it can neither be used nor destroyed. Its pages stay shared
// with the parent, since nothing writes to them.
template <typename Held>
void abandon_if_parents(std::shared_ptr<Held>& held) {
  if (held && held->process != ::getpid()) {
    static_cast<void>(new std::shared_ptr<Held>(std::move(held)));
  }
}

}  // namespace

nanobind::object RecentRequest::find(const nanobind::tuple& asked) const {
  if (!asked_.is_valid()) return {};
  const auto kept = nanobind::borrow<nanobind::tuple>(asked_);
  if (asked.size() != kept.size()) return {};
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!asked[i].is(kept[i]) && !same_items(asked[i], kept[i])) return {};
  }
  return request_;
}

void RecentRequest::keep(nanobind::tuple asked, nanobind::object request) {
  asked_ = std::move(asked);
  request_ = std::move(request);
}

bool Interrupts::pending() {
  if (!handles_signals_) return must_end();
  const auto now = std::chrono::steady_clock::now();
  if (raised_ || now - asked_ < kPatience) return raised_;
  asked_ = now;
  const nanobind::gil_scoped_acquire acquired;
  raised_ = PyErr_CheckSignals() != 0;
  return raised_;
}

void Interrupts::rethrow() const {
  if (raised_) throw nanobind::python_error();
  if (must_end()) end_thread();
}

EngineHandle::EngineHandle(std::string folder, EngineOptions options)
    : folder_(std::move(folder)),
      options_(std::move(options)),
      loaded_(new Loaded{::getpid(), load_without_lock(folder_, options_)}) {}

EngineHandle::~EngineHandle() {
  abandon_if_parents(loaded_);
  abandon_if_parents(reload_);
}

std::shared_ptr<EngineHandle::Loaded> EngineHandle::here() {
  return loaded_->process == ::getpid() ? loaded_ : reload();
}

// Other threads run while one loads; those that need this engine wait for it. If loading fails, the
// next one tries.
std::shared_ptr<EngineHandle::Loaded> EngineHandle::reload() {
  abandon_if_parents(reload_);
  if (!reload_) reload_.reset(new Reload{::getpid()});
  const std::shared_ptr<Reload> mine = reload_;
  {
    const Unlocked unlocked;
    std::call_once(mine->once, [&] {
      mine->loaded.reset(new Loaded{mine->process, Engine::load(folder_, options_)});
    });
  }
  abandon_if_parents(loaded_);
  loaded_ = mine->loaded;
  reload_.reset();
  return loaded_;
}

EngineHandle::Ownership::Ownership(Loaded& loaded) : loaded_(loaded) {
  loaded.before = counted_by(loaded.engine);
  loaded.owner = std::this_thread::get_id();
}

// This thread holds the engine: waiting for it would never end.
void EngineHandle::refuse_nested_call() {
  fail(ErrorCode::internal,
       "the engine was called from a handler of a running call: this thread is in the middle of "
       "one, which a signal interrupted; let the handler set a flag, or raise to end the call");
}

Counters EngineHandle::counters() {
  const std::shared_ptr<Loaded> loaded = here();
  if (loaded->is_mine()) return loaded->before;
  return run([](const Engine& engine, auto) { return counted_by(engine); });
}

}  // namespace toto::python
