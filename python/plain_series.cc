// The usual inputs, read where they lie. After a forecast the processor's caches hold the network
// and not the interpreter, so that every object touched costs a wait for memory: ten times what it
// costs in a loop of its own. What is not usual is left to totocpp/_arrays.py.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "bindings.h"

namespace toto::python {
namespace {

// What is read of an array, as long as the array is as it was.
struct ArrayView {
  int num_axes = 0;
  bool is_double = false;  // or float32
  const Py_ssize_t* shape = nullptr;
  const Py_ssize_t* strides = nullptr;  // in bytes
  const void* data = nullptr;
  nb::object owner = {};  // of what the pointers point to, if it is not the array
};

// The beginning of every ndarray: part of NumPy's binary interface, whose macros compile to this in
// each extension. A usual array is read here without a call into NumPy, whose code would have to
// come from memory first.
struct ArrayFields {
  PyObject head;
  const void* data;
  int num_axes;
  const Py_ssize_t* shape;
  const Py_ssize_t* strides;
  PyObject* base;
  PyObject* description;
};

// NumPy's PyArrayInterface, version 2: what an array's __array_struct__ points to.
struct ArrayInterface {
  int two;
  int num_axes;
  char kind;
  int item_size;
  int flags;
  const Py_ssize_t* shape;
  const Py_ssize_t* strides;
  const void* data;
  PyObject* description;
};
constexpr int kNativeByteOrder = 0x200;

nb::object capsule_of(nb::handle array) {
  static PyObject* const name = PyUnicode_InternFromString("__array_struct__");
  PyObject* const capsule = PyObject_GetAttr(array.ptr(), name);
  if (capsule == nullptr) throw nb::python_error();
  return nb::steal(capsule);
}

const ArrayInterface& interface_of(const nb::object& capsule) {
  return *static_cast<const ArrayInterface*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
}

const ArrayFields& fields_of(nb::handle array) {
  return *reinterpret_cast<const ArrayFields*>(array.ptr());
}

// NumPy's objects, kept for ever: modules are.
struct Numpy {
  Numpy() {
    const nb::module_ numpy = nb::module_::import_("numpy");
    type = nb::object(numpy.attr("ndarray")).release().ptr();
    const nb::object example = numpy.attr("zeros")(nb::make_tuple(2, 3), "float32");
    const nb::object capsule = capsule_of(example);
    const ArrayFields& fields = fields_of(example);
    const ArrayInterface& about = interface_of(capsule);
    // A later NumPy whose arrays begin differently is asked, every time.
    if (fields.num_axes != about.num_axes || fields.data != about.data) return;
    float32 = nb::object(numpy.attr("dtype")("float32")).release().ptr();
    float64 = nb::object(numpy.attr("dtype")("float64")).release().ptr();
  }
  PyObject* type;
  // The types of all arrays but those that were unpickled, or whose type says more.
  PyObject *float32 = nullptr, *float64 = nullptr;
};
const Numpy& numpy() {
  static const Numpy all;
  return all;
}

// An ndarray itself: what derives from it may mean more than its values, as masked arrays do.
bool is_array(nb::handle given) {
  return reinterpret_cast<PyObject*>(Py_TYPE(given.ptr())) == numpy().type;
}

// Nothing for what is no array of floats in this machine's order of bytes.
std::optional<ArrayView> view_of(nb::handle given) {
  if (!is_array(given)) return {};
  const ArrayFields& array = fields_of(given);
  const bool is_double = array.description == numpy().float64;
  if (is_double || array.description == numpy().float32) {
    return ArrayView{array.num_axes, is_double, array.shape, array.strides, array.data};
  }
  nb::object capsule = capsule_of(given);
  const ArrayInterface& about = interface_of(capsule);
  if (about.kind != 'f' || (about.flags & kNativeByteOrder) == 0 ||
      (about.item_size != sizeof(float) && about.item_size != sizeof(double))) {
    return {};
  }
  return ArrayView{about.num_axes, about.item_size == sizeof(double),
                   about.shape,    about.strides,
                   about.data,     std::move(capsule)};
}

// False for what float32 cannot hold; infinities among the input are left for others to explain.
bool round_to(float& rounded, double value) {
  rounded = static_cast<float>(value);
  return !std::isinf(rounded);
}

// A batch beyond this asks first whether memory suffices: totocpp/_arrays.py does.
constexpr std::size_t kMaxItems = std::size_t{1} << 22;

// The series of a batch one after another, in the memory that an earlier batch left behind.
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
    std::memcpy(&value, row, sizeof value);  // it may lie anywhere
    fits &= round_to(values[i], value);
  }
  return fits;
}

// [time] or [series, time].
bool read_array(const ArrayView& array, Slots& slots) {
  const int axes = array.num_axes;
  if (axes < 1 || axes > 2) return false;
  const Py_ssize_t rows = axes == 2 ? array.shape[0] : 1, length = array.shape[axes - 1];
  if (rows < 1) return false;
  const Py_ssize_t stride = array.strides[axes - 1], step = axes == 2 ? array.strides[0] : 0;
  const auto* row = static_cast<const std::byte*>(array.data);
  for (Py_ssize_t i = 0; i < rows; ++i, row += step) {
    std::vector<float>* const values = slots.next(static_cast<std::size_t>(length));
    if (values == nullptr || !(array.is_double ? read_row<double>(row, stride, *values)
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
  if (!PyLong_CheckExact(item)) return false;  // a bool among others
  const double whole = PyLong_AsDouble(item);
  if (whole == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  if (std::abs(whole) >= 0x1p53) return false;  // it may have been rounded already
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
  const std::optional<ArrayView> array = view_of(given);
  return array && array->num_axes == 1 && read_array(*array, slots);
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
    const std::optional<ArrayView> array = view_of(given);
    if (!array) return Plain::none;
    if (array->num_axes != 1) kind = Plain::many;
    read = read_array(*array, slots);
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
