#include "io/file_set.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

namespace toto::io {

FileSet::~FileSet() { forget_old(); }

void FileSet::add(const std::string& path, const std::function<void(const Sink&)>& write) {
  auto file = std::make_unique<AtomicFile>(path);
  write([&](std::string_view text) { file->write(text); });
  file->finish(Flush::now);  // one descriptor at a time: an evaluation may draw thousands of charts
  items_.push_back({.file = std::move(file), .old = {}});
}

void FileSet::add(const std::string& path, std::string_view text) {
  add(path, [text](const Sink& sink) { sink(text); });
}

// A second name for the old file, which a rename of the new one leaves in place.
void FileSet::keep_old(Item& item) const {
  if (item.file->is_direct()) return;
  const std::string& target = item.file->target_;
  const auto folder = std::filesystem::path(target).parent_path();
  do {
    item.old = (folder / temporary_name()).string();
    if (::link(target.c_str(), item.old.c_str()) == 0) return;
  } while (errno == EEXIST);
  item.old.clear();  // nothing to keep, or a file system without hard links
}

void FileSet::restore(std::size_t count) noexcept {
  while (count-- > 0) {
    Item& item = items_[count];
    const std::string& target = item.file->target_;
    if (target.empty()) continue;  // written directly
    if (item.old.empty()) {
      ::unlink(target.c_str());  // there was none
    } else if (::rename(item.old.c_str(), target.c_str()) == 0) {
      item.old.clear();
    }
  }
}

void FileSet::forget_old() noexcept {
  for (Item& item : items_) {
    if (!item.old.empty()) ::unlink(item.old.c_str());
    item.old.clear();
  }
}

void FileSet::commit() {
  std::set<std::string> folders;
  for (Item& item : items_) {
    keep_old(item);
    if (item.file->is_direct()) continue;
    folders.insert(std::filesystem::path(item.file->target_).parent_path().string());
  }
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const int error = items_[i].file->publish();
    if (error == 0) continue;
    restore(i);
    fail_write(items_[i].file->path_, "rename the finished file", error);
  }
  forget_old();
  for (const std::string& folder : folders) flush_folder(folder);
}

}  // namespace toto::io
