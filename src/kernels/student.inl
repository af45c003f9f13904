// Sums over weighted Student-T distributions (kernels.h: StudentBlock). Included by kernels.inl.

// log(1 + z), given one = 1 + z and inverse = 1 / one; relative error 2e-7 down to the smallest z.
TOTO_INLINE Vec log1p_given(Vec z, Vec one, Vec inverse) {
  const LogParts parts = log_parts(one);
  const Vec f = sub(parts.mantissa, broadcast(1.0f));
  Vec p = broadcast(kLogPoly[0]);
  for (int i = 1; i < kLogTerms; ++i) p = fma(p, f, broadcast(kLogPoly[i]));
  const Vec f2 = mul(f, f);
  const Vec curve = fma(mul(f2, f), p, mul(f2, broadcast(-0.5f)));
  const Vec lost = mul(sub(z, sub(one, broadcast(1.0f))), inverse);
  return add(fma(parts.exponent, broadcast(kLn2), f), add(curve, lost));
}

TOTO_INLINE Vec erfcx(Vec x) {
  Vec above = broadcast(kErfcxAbove[0]), below = broadcast(kErfcxBelow[0]);
  for (int i = 1; i < kErfcxTerms; ++i) above = fma(above, x, broadcast(kErfcxAbove[i]));
  for (int i = 1; i <= kErfcxTerms; ++i) below = fma(below, x, broadcast(kErfcxBelow[i]));
  return div(above, below);
}

struct StudentLaneSums {
  Vec below, above, density, mean_above;
};

// Adds kLanes lanes of a block, from `lane` on, at the point x_high + x_low.
TOTO_INLINE void add_student_lanes(const StudentBlock& block, int lane, Vec x_high, Vec x_low,
                                   StudentLaneSums& sums) {
  const Vec one = broadcast(1.0f), half = broadcast(0.5f);
  const Vec loc = load(block.loc_high + lane);
  const Vec distance = add(sub(x_high, loc), sub(x_low, load(block.loc_low + lane)));
  const Vec t = mul(distance, load(block.inv_scale + lane));
  const Vec root_z =
      min(mul(absolute(t), load(block.inv_sqrt_df + lane)), broadcast(kStudentReach));
  const Vec z = mul(root_z, root_z);
  const Vec spread = add(one, z);
  const Vec y = div(one, spread);
  const Vec s = log1p_given(z, spread, y);
  const Vec half_df = load(block.half_df + lane);
  const Vec power = exp(sub(zero(), mul(half_df, s)));  // y^a
  const Vec root_y = square_root(y);
  const Vec root_u = square_root(mul(add(half_df, broadcast(kStudentShift - 0.25f)), s));
  Vec far = load(block.far[3] + lane);
  for (int i = 2; i >= 0; --i) far = fma(far, s, load(block.far[i] + lane));
  Vec near = load(block.near[kStudentShift - 1] + lane);
  for (int i = kStudentShift - 2; i >= 0; --i) near = fma(near, y, load(block.near[i] + lane));
  const Vec remainder = fma(root_u, far, erfcx(root_u));
  const Vec y3 = mul(mul(y, y), y);
  const Vec terms = mul(root_y, fma(root_z, near, mul(mul(y3, square_root(root_y)), remainder)));
  const Vec weight = load(block.weight + lane);
  const Vec tail = mul(mul(mul(weight, half), power), terms);
  const Vec body = sub(weight, tail);
  const Vec above = select_by_sign(t, body, tail);
  const Vec density = mul(load(block.peak + lane), mul(power, root_y));
  sums.below = add(sums.below, select_by_sign(t, tail, body));
  sums.above = add(sums.above, above);
  sums.density = add(sums.density, density);
  // Standard form: the integral of t f(t) from t on is (df + t^2) / (df - 1) f(t).
  const Vec beyond = mul(load(block.moment + lane), mul(spread, density));
  sums.mean_above = add(sums.mean_above, fma(loc, above, beyond));
}

TOTO_INLINE double add_lanes(const double (&lanes)[kStudentBlock]) {
  double sums[kStudentBlock];
  for (int i = 0; i < kStudentBlock; ++i) sums[i] = lanes[i];
  for (int width = kStudentBlock / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  return sums[0];
}

StudentSums student_sums(const StudentBlock* blocks, int num_blocks, double x) noexcept {
  const Vec x_high = broadcast(static_cast<float>(x));
  const Vec x_low = broadcast(static_cast<float>(x - static_cast<float>(x)));
  double totals[4][kStudentBlock] = {};
  for (int first = 0; first < num_blocks; first += kStudentRun) {
    const int last = num_blocks < first + kStudentRun ? num_blocks : first + kStudentRun;
    for (int lane = 0; lane < kStudentBlock; lane += Vec::kLanes) {
      StudentLaneSums sums{zero(), zero(), zero(), zero()};
      for (int i = first; i < last; ++i) add_student_lanes(blocks[i], lane, x_high, x_low, sums);
      float stored[4][Vec::kLanes];
      store(stored[0], sums.below);
      store(stored[1], sums.above);
      store(stored[2], sums.density);
      store(stored[3], sums.mean_above);
      for (int i = 0; i < 4; ++i) accumulate(totals[i] + lane, 1.0, stored[i], Vec::kLanes);
    }
  }
  return {add_lanes(totals[0]), add_lanes(totals[1]), add_lanes(totals[2]), add_lanes(totals[3])};
}
