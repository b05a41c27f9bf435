// The session's lock in a forked child.
#pragma once

namespace plugrad {

/// In a child forked while another thread had the session's lock: waiting for it is an error.
void lose_session_lock();

}  // namespace plugrad
