call('SET', state, struct.pack('<BBddI4I6I6c10', 1, flags, clock, next_due, largest, added, leases, limits))
