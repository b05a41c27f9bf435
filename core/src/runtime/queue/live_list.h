// Live objects of one device, so that a shutdown can destroy their handles.
#pragma once

#include <mutex>

namespace plugrad::runtime {

/// Base class of the elements of a LiveList.
template <class T>
class LiveNode {
  template <class>
  friend class LiveList;
  T *previous_ = nullptr, *next_ = nullptr;
};

template <class T>
class LiveList {
 public:
  void add(T& object) {
    const std::lock_guard lock(mutex_);
    LiveNode<T>& node = object;
    node.next_ = first_;
    if (first_) static_cast<LiveNode<T>&>(*first_).previous_ = &object;
    first_ = &object;
  }
  void remove(T& object) {
    const std::lock_guard lock(mutex_);
    LiveNode<T>& node = object;
    T*& before = node.previous_ ? static_cast<LiveNode<T>&>(*node.previous_).next_ : first_;
    before = node.next_;
    if (node.next_) static_cast<LiveNode<T>&>(*node.next_).previous_ = node.previous_;
  }
  template <class Visit>
  void each(const Visit& visit) {
    const std::lock_guard lock(mutex_);
    for (T* object = first_; object; object = static_cast<LiveNode<T>&>(*object).next_)
      visit(*object);
  }

 private:
  std::mutex mutex_;
  T* first_ = nullptr;
};

}  // namespace plugrad::runtime
