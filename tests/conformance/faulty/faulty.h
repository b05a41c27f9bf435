/* Faults selected by the option "fault", triggered at their place in the plugin. */
#ifndef PLUGRAD_TESTS_CONFORMANCE_FAULTY_H
#define PLUGRAD_TESTS_CONFORMANCE_FAULTY_H

#ifdef __cplusplus
extern "C" {
#endif

/* Crashes, hangs, aborts, prints, exits, throws, says something or has a driver say it if `fault` is "PLACE-crash" etc. */
void happen(const char* fault, const char* place);
void throw_something(void);
void faulty_driver_says(void);

#ifdef __cplusplus
}
#endif

#endif
