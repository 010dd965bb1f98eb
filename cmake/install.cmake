# SPDX-License-Identifier: MIT
#
# What other builds find of an installed sotto:
#
#   pkg-config   sotto, sotto-speech, sotto-media, sotto-models; with --static what the archives need besides
#   CMake        find_package(sotto CONFIG [COMPONENTS shared|static]): sotto::sotto, ::speech, ::media, ::models

include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/sotto)

# -------------------------------------------------------------- pkg-config

# pkg_config(<name> <what it is> REQUIRES module... PRIVATE module... LIBS flag...)
# REQUIRES are sotto's own, named in its headers; PRIVATE modules and LIBS are only for static linking.
function(pkg_config name description)
    cmake_parse_arguments(arg "" "" "REQUIRES;PRIVATE;LIBS" ${ARGN})
    string(REPLACE ";" " " requires "${arg_REQUIRES}")
    string(REPLACE ";" " " private "${arg_PRIVATE}")
    string(REPLACE ";" " " libs "${arg_LIBS}")
    configure_file(cmake/module.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

pkg_config(sotto "tensor engine" LIBS -lm ${CMAKE_THREAD_LIBS_INIT})
pkg_config(sotto-speech "speech recognition" REQUIRES sotto PRIVATE zlib LIBS -lm)
pkg_config(sotto-media "sound from files" REQUIRES sotto LIBS ${FFMPEG_LDFLAGS} -lm ${CMAKE_THREAD_LIBS_INIT})
pkg_config(sotto-models "conversion of speech models" REQUIRES sotto PRIVATE sotto-speech jansson LIBS -lm)

# ------------------------------------------------------------------- CMake

configure_package_config_file(cmake/sotto-config.cmake.in ${CMAKE_BINARY_DIR}/sotto-config.cmake
    INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sotto-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sotto-config.cmake ${CMAKE_BINARY_DIR}/sotto-config-version.cmake
    DESTINATION ${package_folder})
install(EXPORT sotto-static NAMESPACE sotto:: DESTINATION ${package_folder})
if(SOTTO_SHARED)
    install(EXPORT sotto-shared NAMESPACE sotto:: DESTINATION ${package_folder})
endif()
