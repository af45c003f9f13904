// What may not be broken in production, for the tools that compare modes under load. From half of
// a limit on they warn.
#pragma once

namespace toto::validate {

inline constexpr double kMaxMaeChange = 0.05;  // of the MAE of `reference`
inline constexpr double kMaxReplans = 10;      // after warm-up, in a run of one mode
inline constexpr double kMinSpeed = 0.8;       // of `reference`
inline constexpr double kWarnShare = 0.5;

}  // namespace toto::validate
