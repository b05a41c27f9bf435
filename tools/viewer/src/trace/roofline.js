// Compares a kernel's rates with what its device can do at most.

/// Rates of a kernel from the mean of its launches: gflops, gbps, intensity (FLOP a byte), roof
/// (GFLOP/s that the device allows at this intensity), share of the bound, and the bound's name.
export function rates(kernel, device) {
  const time = kernel.launches > 0 ? kernel.total / kernel.launches : 0;
  const gflops = time > 0 ? kernel.flops / time : 0,
    gbps = time > 0 ? kernel.bytes / time : 0;
  const intensity = kernel.bytes > 0 ? kernel.flops / kernel.bytes : 0;
  const compute = device?.peakGflops > 0 ? gflops / device.peakGflops : 0;
  const memory = device?.peakGbps > 0 ? gbps / device.peakGbps : 0;
  const roof =
    device?.peakGflops > 0 && device?.peakGbps > 0
      ? Math.min(device.peakGflops, intensity * device.peakGbps)
      : 0;
  const share = Math.max(compute, memory);
  let bound = '';
  const launch = device?.launch ?? 0;
  if (share > 0) bound = compute >= memory ? 'compute' : 'memory';
  // As in `plugrad profile`: most of the time is the launch itself.
  if (time > 0 && launch > share * time && 2 * launch > time) bound = 'launch';
  return { time, gflops, gbps, intensity, roof, share, bound };
}

/// The roof as points for a logarithmic plot from one intensity to another.
export function roofLine(device, low, high) {
  if (!(device?.peakGflops > 0 && device?.peakGbps > 0)) return [];
  const ridge = device.peakGflops / device.peakGbps;
  const at = (x) => [x, Math.min(device.peakGflops, x * device.peakGbps)];
  return [low, ridge, high].filter((x) => x >= low && x <= high).map(at);
}
