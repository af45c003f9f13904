# Read by find_package(toto): what libtoto.a links with, then the target toto::toto.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(fmt)
find_dependency(simdjson)
include(${CMAKE_CURRENT_LIST_DIR}/toto-targets.cmake)
