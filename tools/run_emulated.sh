#!/usr/bin/env bash
# Executes the AVX-512 kernels without a CPU that has them: run_emulated.sh [BUILD_FOLDER [CPU_MODEL]]
# Bochs emulates the CPU (`bochs --help cpu` lists its models), boots Debian's kernel and runs the
# programs of BUILD_FOLDER as they are: kernels_tests (every kernel table against the plain one, bit
# by bit), the comparison of whole forecasts in forecast_tests, a few goldens, and forecasts whose
# output must have the same hash as outside. Arithmetic is hundreds of times slower in the emulator, so
# they are few and short. Needs only Debian packages and no root; takes three minutes of an idle core,
# LIMIT_SECONDS (3600) at most.
set -euo pipefail
build=$(realpath -m "${1:-build}") model=${2:-corei7_skylake_x}
cd "$(dirname "$(realpath "$0")")/.."

missing=()
for package in bochs bochsbios bochs-term isolinux syslinux-common xorriso cpio busybox-static; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -ne 0 ]; then
  echo "error: packages are missing; run: apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
programs=("$build/toto" "$build/tests/kernels_tests" "$build/tests/forecast_tests")
for program in "${programs[@]}"; do
  [ -x "$program" ] || { echo "error: there is no program $program; build it first: make test" >&2; exit 1; }
done

goldens="tests/golden/exogenous tests/golden/batch_of_series tests/golden/variate_labels"
work=$(mktemp -d)
emulator=
trap '[ -z "$emulator" ] || kill "$emulator" 2>/dev/null || true; rm -rf "$work"' EXIT
disk=$work/disk guest=$work/guest
mkdir -p "$disk" "$guest"/{bin,dev,proc,tmp}

# The kernel is taken out of its package, not installed.
kernel=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
  sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*\).*/\1/p' | head -n 1)
(cd "$work" && [ -n "$kernel" ] && apt-get download -qq "$kernel" 2>/dev/null) ||
  { echo "error: apt cannot download the package linux-image-cloud-amd64 names; run: apt-get update" >&2; exit 1; }
dpkg-deb --fsys-tarfile "$work/$kernel"_*.deb | tar -xO --wildcards './boot/vmlinuz-*' >"$disk/vmlinuz"

# The same files at the same paths inside as outside: programs, their libraries, model and data.
mapfile -t libraries < <(ldd "${programs[@]}" | grep -o '/[^ ]*\.so[^ ]*' | sort -u)
cp -L --parents "${programs[@]}" "${libraries[@]}" "$guest"
cp -r --parents "$PWD"/{models/toto-mini,examples/data,tests/golden} "$guest"
cp "$(command -v busybox)" "$guest/bin/busybox"
ln -s busybox "$guest/bin/sh"

# forecasts FOLDER ISA...: prints "hash ISA NAME SHA256" of a univariate and a multivariate sampled
# forecast and of a long one that feeds its mean back. Read by both sides.
cat >"$guest/forecasts" <<'END'
forecasts() {
  folder=$1
  shift
  for isa; do
    $toto forecast examples/data/AAPL.csv --columns close --horizon 64 --context 512 --samples 4 \
      --isa "$isa" --output "$folder/aapl.csv"
    $toto forecast examples/data/beijing_air.csv --multivariate --horizon 24 --context 256 \
      --samples 2 --isa "$isa" --output "$folder/beijing_air.csv"
    $toto forecast examples/data/AirPassengers.csv --horizon 96 --decode mean --isa "$isa" \
      --output "$folder/air_passengers.csv"
    for name in aapl beijing_air air_passengers; do
      echo "hash $isa $name $(sha256sum <"$folder/$name.csv" | cut -c 1-64)"
      rm -f "$folder/$name.csv"
    done
  done 2>/dev/null
}
END

cat >"$guest/init" <<END
#!/bin/sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
cd '$PWD'
export GTEST_COLOR=no GTEST_BRIEF=1 toto='$build/toto'
. /forecasts
{
  echo "cpu \$(sed -n 's/^model name.*: //p' /proc/cpuinfo)"
  echo "has \$(grep -m 1 ^flags /proc/cpuinfo | grep -o -w 'fma\|avx[0-9a-z_]*' | tr '\n' ' ')"
  echo "best \$(\$toto doctor | sed -n 's/.*instruction set *\([a-z0-9]*\).*/\1/p')"
  '$build/tests/kernels_tests'; echo "exit kernels_tests \$?"
  forecasts /tmp auto avx2
  \$toto verify --golden $goldens --golden-only --modes default >/tmp/verify 2>&1; echo "exit goldens \$?"
  tail -n 1 /tmp/verify; echo
  '$build/tests/forecast_tests' --gtest_filter=EngineTest.SameBitsOnEveryIsa; echo "exit forecast_tests \$?"
} >/dev/ttyS0 2>&1
sleep 1  # the last characters are still in the serial port
poweroff -f
END
chmod +x "$guest/init"
(cd "$guest" && find . | cpio --quiet -o -H newc | gzip -1) >"$disk/initrd"

# Without XSAVEC and XSAVES, whose sizes Bochs 2.7 misreports: Linux would turn all of AVX off.
cat >"$disk/isolinux.cfg" <<END
default run
label run
  kernel vmlinuz
  append initrd=initrd console=ttyS0 quiet loglevel=0 mitigations=off nokaslr clearcpuid=xsavec,xsaves,aperfmperf
END
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$disk"
xorriso -as mkisofs -quiet -o "$work/disk.iso" -b isolinux.bin -c boot.cat -no-emul-boot \
  -boot-load-size 4 -boot-info-table "$disk" 2>/dev/null

cat >"$work/bochsrc" <<END
display_library: term
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
cpu: model=$model, count=1, ips=50000000, reset_on_triple_fault=0
memory: guest=1024, host=1024
ata0-master: type=cdrom, path=$work/disk.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$work/serial
log: $work/bochs.log
panic: action=fatal
END
echo continue >"$work/debugger"  # Debian's Bochs starts in its debugger
echo "$(dpkg-query -W -f '${Package} ${Version}' bochs), $kernel, CPU model $model"
TERM=xterm timeout -k 5 "${LIMIT_SECONDS:-3600}" bochs -f "$work/bochsrc" -rc "$work/debugger" \
  </dev/null >"$work/screen" 2>&1 &
emulator=$!
# Bochs draws its screen on a separate pseudo-terminal and stops if that is not read.
terminal=
while [ -z "$terminal" ] && kill -0 $emulator 2>/dev/null; do
  sleep 0.2
  terminal=$(sed -n 's/^Bochs connected to screen "\(.*\)".*/\1/p' "$work/screen")
done
if [ -n "$terminal" ]; then
  stty -F "$terminal" raw -echo
  cat "$terminal" >/dev/null 2>&1 &
fi
wait $emulator || true
[ -s "$work/serial" ] ||
  { echo "error: the emulated machine printed nothing within the time limit:" >&2; tail -n 5 "$work/bochs.log" "$work/screen" >&2; exit 1; }
tr -d '\r' <"$work/serial" | tee "$work/report"

toto=$build/toto
. "$guest/forecasts"
forecasts "$work" auto reference >"$work/outside" || true
echo "outside:"
cat "$work/outside"

wrong=()
grep -qx 'best avx512' "$work/report" || wrong+=("avx512 is not the best instruction set of $model")
for part in kernels_tests goldens forecast_tests; do
  grep -qx "exit $part 0" "$work/report" || wrong+=("$part failed or did not end")
done
# One hash per forecast, for every instruction set and CPU.
cat "$work/report" "$work/outside" | { grep -E '^hash [a-z0-9]+ [a-z_]+ [0-9a-f]{64}$' || true; } >"$work/hashes"
[ "$(wc -l <"$work/hashes")" -eq 12 ] || wrong+=("not all 12 forecasts were made")
[ "$(cut -d ' ' -f 3- "$work/hashes" | sort -u | wc -l)" -eq 3 ] || wrong+=("forecasts differ")
for reason in "${wrong[@]}"; do echo "error: $reason" >&2; done
[ ${#wrong[@]} -eq 0 ] || exit 1
echo "agreed: avx512, avx2 and reference give the same bits"
