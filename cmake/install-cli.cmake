# SPDX-License-Identifier: MIT
#
# What belongs to the command line: the link whisper-cli; and where the command runs on the machine that builds it, the
# manual page and the shells' completions, printed by the command itself.

set(link ${CMAKE_BINARY_DIR}/whisper-cli)
file(CREATE_LINK sotto ${link} SYMBOLIC)
install(FILES ${link} DESTINATION ${CMAKE_INSTALL_BINDIR})

if(NOT CMAKE_CROSSCOMPILING AND NOT SOTTO_SANITIZE)
    set(printed ${CMAKE_BINARY_DIR}/printed)
    file(MAKE_DIRECTORY ${printed})
    add_custom_command(OUTPUT ${printed}/sotto.1 ${printed}/sotto ${printed}/_sotto
        COMMAND sotto help --man > ${printed}/sotto.1
        COMMAND sotto completion bash > ${printed}/sotto
        COMMAND sotto completion zsh > ${printed}/_sotto
        DEPENDS sotto VERBATIM)
    add_custom_target(printed ALL DEPENDS ${printed}/sotto.1)
    install(FILES ${printed}/sotto.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${printed}/sotto DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${printed}/_sotto DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
