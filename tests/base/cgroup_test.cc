// Limits of control groups, read from made-up /proc and /sys folders.
#include "base/machine.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "test_model.h"

namespace toto {
namespace {

class CgroupTest : public ::testing::Test {
 protected:
  void file(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = folder_ / path;
    std::filesystem::create_directories(whole.parent_path());
    testing::write_text(whole, text);
  }
  void group(const std::string& path) { file("proc/self/cgroup", path); }
  CgroupLimits limits() const { return cgroup_limits(folder_.path()); }

  testing::TemporaryFolder folder_;
};

TEST_F(CgroupTest, NoFilesMeanNoLimits) {
  EXPECT_FALSE(limits().cores.has_value());
  EXPECT_FALSE(limits().memory_bytes.has_value());
  group("0::/\n");
  file("sys/fs/cgroup/cpu.max", "max 100000\n");
  file("sys/fs/cgroup/memory.max", "max\n");
  file("sys/fs/cgroup/memory.current", "5000\n");
  EXPECT_FALSE(limits().cores.has_value());
  EXPECT_FALSE(limits().memory_bytes.has_value());
}

TEST_F(CgroupTest, ReadsTheRootGroupInAContainer) {
  group("0::/\n");
  file("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(limits().cores, 1.5);
}

TEST_F(CgroupTest, CountsPageCacheAsFree) {
  group("0::/\n");
  file("sys/fs/cgroup/memory.max", "1000\n");
  file("sys/fs/cgroup/memory.current", "900\n");
  EXPECT_EQ(limits().memory_bytes, 100U);
  file("sys/fs/cgroup/memory.stat", "anon 200\nfile 700\ninactive_file 600\nactive_file 100\n");
  EXPECT_EQ(limits().memory_bytes, 700U);
  file("sys/fs/cgroup/memory.current", "1700\n");  // over the limit for a moment
  EXPECT_EQ(limits().memory_bytes, 0U);
}

TEST_F(CgroupTest, TakesTheStrictestParent) {
  group("0::/user.slice/job.service\n");
  file("sys/fs/cgroup/user.slice/job.service/cpu.max", "400000 100000\n");
  file("sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n");
  file("sys/fs/cgroup/user.slice/job.service/memory.max", "300\n");
  file("sys/fs/cgroup/user.slice/job.service/memory.current", "50\n");
  file("sys/fs/cgroup/user.slice/memory.max", "1000\n");
  file("sys/fs/cgroup/user.slice/memory.current", "900\n");
  EXPECT_EQ(limits().cores, 2);
  EXPECT_EQ(limits().memory_bytes, 100U);
}

TEST_F(CgroupTest, ReadsVersionOneControllers) {
  group("9:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(limits().cores.has_value());
  file("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "50000\n");
  file("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000\n");
  file("sys/fs/cgroup/memory/memory.usage_in_bytes", "1900\n");
  file("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 400\n");
  EXPECT_EQ(limits().cores, 0.5);
  EXPECT_EQ(limits().memory_bytes, 500U);
}

TEST_F(CgroupTest, IgnoresMalformedFiles) {
  group("garbage\n0:\n::\n0::relative\n7:cpu:\n");
  file("sys/fs/cgroup/cpu.max", "100 0\n");
  EXPECT_FALSE(limits().cores.has_value());
  EXPECT_FALSE(limits().memory_bytes.has_value());
}

}  // namespace
}  // namespace toto
