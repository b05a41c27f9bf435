/* What goes wrong, by the option "fault": at its place in the plugin, else nothing. */
#ifndef PLUGRAD_TESTS_CONFORMANCE_FAULTY_H
#define PLUGRAD_TESTS_CONFORMANCE_FAULTY_H

#ifdef __cplusplus
extern "C" {
#endif

/* Crashes, hangs, aborts, prints, exits or throws where `fault` is "PLACE-crash" and so on. */
void happen(const char* fault, const char* place);
void throw_something(void);

#ifdef __cplusplus
}
#endif

#endif
