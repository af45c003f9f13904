// Reads plain inputs in place: arrays of float32 and float64, lists of numbers. After a forecast
// the CPU caches hold the network, not the interpreter: touching a Python object then takes ten
// times as long as in a tight loop. totocpp/_arrays.py reads all other inputs.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "bindings.h"

namespace toto::python {
namespace {

// NumPy's array type. Never released, like the module.
PyObject* array_type() {
  static PyObject* const type =
      nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
  return type;
}

// Exactly ndarray: derived types such as masked arrays may mean more than their values.
bool is_array(nb::handle given) {
  return reinterpret_cast<PyObject*>(Py_TYPE(given.ptr())) == array_type();
}

// The memory of an array of float32 or float64 in native byte order, held through the buffer
// protocol. False for anything else.
class ArrayView {
 public:
  explicit ArrayView(nb::handle given) {
    if (!is_array(given)) return;
    if (PyObject_GetBuffer(given.ptr(), &buffer_, PyBUF_RECORDS_RO) != 0) {
      PyErr_Clear();  // for example an array of times
      return;
    }
    const std::string_view format = buffer_.format != nullptr ? buffer_.format : "";
    is_double_ = format == "d";
    is_float_ = format == "f";
  }
  ArrayView(const ArrayView&) = delete;
  ArrayView& operator=(const ArrayView&) = delete;
  ~ArrayView() { PyBuffer_Release(&buffer_); }  // does nothing for an empty buffer

  explicit operator bool() const { return is_double_ || is_float_; }
  bool is_double() const { return is_double_; }
  int num_axes() const { return buffer_.ndim; }
  Py_ssize_t size(int axis) const { return buffer_.shape[axis]; }
  Py_ssize_t stride(int axis) const { return buffer_.strides[axis]; }  // in bytes
  const std::byte* data() const { return static_cast<const std::byte*>(buffer_.buf); }

 private:
  Py_buffer buffer_ = {};
  bool is_double_ = false, is_float_ = false;
};

// False for values beyond float32 and for infinities: totocpp/_arrays.py reports those.
bool round_to(float& rounded, double value) {
  rounded = static_cast<float>(value);
  return !std::isinf(rounded);
}

// Larger batches are read by totocpp/_arrays.py, which first checks the available memory.
constexpr std::size_t kMaxItems = std::size_t{1} << 22;

// The series of a batch, in the memory of an earlier batch.
class Slots {
 public:
  explicit Slots(std::vector<Series>& series) : series_(series) {
    std::size_t kept = 0;  // each slot keeps the longest series it ever held
    for (const Series& item : series) kept += item.values.capacity();
    if (kept > kMaxItems) series.clear();
  }

  // The values of the next series; null if it is empty or the batch has become too large.
  std::vector<float>* next(std::size_t length) {
    if (length == 0 || length > left_) return nullptr;
    left_ -= length;
    if (used_ == series_.size()) series_.emplace_back();
    std::vector<float>& values = series_[used_++].values;
    values.resize(length);
    return &values;
  }

  void finish() { series_.resize(used_); }

 private:
  std::vector<Series>& series_;
  std::size_t used_ = 0, left_ = kMaxItems;
};

template <typename T>
bool read_row(const std::byte* row, Py_ssize_t stride, std::vector<float>& values) {
  const std::size_t length = values.size();
  if (std::is_same_v<T, float> && stride == Py_ssize_t{sizeof(float)}) {
    std::memcpy(values.data(), row, length * sizeof(float));
    return true;
  }
  bool fits = true;
  for (std::size_t i = 0; i < length; ++i, row += stride) {
    T value;
    std::memcpy(&value, row, sizeof value);  // may be unaligned
    fits &= round_to(values[i], value);
  }
  return fits;
}

// [time] or [series, time].
bool read_array(const ArrayView& array, Slots& slots) {
  const int axes = array.num_axes();
  if (axes < 1 || axes > 2) return false;
  const Py_ssize_t rows = axes == 2 ? array.size(0) : 1, length = array.size(axes - 1);
  if (rows < 1) return false;
  const Py_ssize_t stride = array.stride(axes - 1), step = axes == 2 ? array.stride(0) : 0;
  const std::byte* row = array.data();
  for (Py_ssize_t i = 0; i < rows; ++i, row += step) {
    std::vector<float>* const values = slots.next(static_cast<std::size_t>(length));
    if (values == nullptr || !(array.is_double() ? read_row<double>(row, stride, *values)
                                                 : read_row<float>(row, stride, *values))) {
      return false;
    }
  }
  return true;
}

bool read_number(PyObject* item, float& value) {
  if (PyFloat_Check(item)) return round_to(value, PyFloat_AsDouble(item));
  if (item == Py_None) {
    value = std::numeric_limits<float>::quiet_NaN();
    return true;
  }
  if (!PyLong_CheckExact(item)) return false;  // for example a bool
  const double whole = PyLong_AsDouble(item);
  if (whole == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  if (std::abs(whole) >= 0x1p53) return false;  // may already be rounded
  return round_to(value, whole);
}

bool read_numbers(const nb::list& list, Slots& slots) {
  std::vector<float>* const values = slots.next(list.size());
  if (values == nullptr) return false;
  for (std::size_t i = 0; i < values->size(); ++i) {
    PyObject* const item = PyList_GetItem(list.ptr(), static_cast<Py_ssize_t>(i));  // borrowed
    if (item == nullptr) throw nb::python_error();
    if (!read_number(item, (*values)[i])) return false;
  }
  return true;
}

// An array or a list of numbers.
bool read_one(nb::handle given, Slots& slots) {
  if (PyList_CheckExact(given.ptr())) return read_numbers(nb::borrow<nb::list>(given), slots);
  const ArrayView array(given);
  return array && array.num_axes() == 1 && read_array(array, slots);
}

bool holds_series(const nb::list& list) {
  PyObject* const first = PyList_Size(list.ptr()) > 0 ? PyList_GetItem(list.ptr(), 0) : nullptr;
  return first != nullptr && (PyList_CheckExact(first) || is_array(first));
}

}  // namespace

Plain plain_series(nb::handle given, std::vector<Series>& series) {
  Slots slots(series);
  Plain kind = Plain::one;
  bool read = true;
  if (!PyList_CheckExact(given.ptr())) {
    const ArrayView array(given);
    if (!array) return Plain::none;
    if (array.num_axes() != 1) kind = Plain::many;
    read = read_array(array, slots);
  } else if (const auto list = nb::borrow<nb::list>(given); holds_series(list)) {
    kind = Plain::many;
    for (std::size_t i = 0; read && i < list.size(); ++i) {
      read = read_one(nb::object(list[i]), slots);
    }
  } else {
    read = read_numbers(list, slots);
  }
  slots.finish();
  return read ? kind : Plain::none;
}

}  // namespace toto::python
