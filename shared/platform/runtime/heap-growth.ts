// decision 0024
import { setFlagsFromString } from 'node:v8';

/**
 * Lets the heap grow to four times its live size before a full collection. By default V8 allows little more than the
 * live size once a process has been idle for some seconds. When load returned, V8 then ran a full collection ten times
 * a second for as long as the load lasted, which took nearly half of the process's time. Buffers stay bounded: V8
 * counts them separately.
 */
export function allowHeapGrowth(): void {
  setFlagsFromString('--heap-growing-percent=300');
}
