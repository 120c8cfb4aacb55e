// decision 0063
/**
 * Waits at most `ms` for the work. The work itself is not cancelled.
 * @param onLate is called when the time is up; returns a substitute for the result, or throws
 */
export async function within<T, L = never>(ms: number, work: Promise<T>, onLate: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<L>((resolve, reject) => {
    timer = setTimeout(() => {
      try {
        resolve(onLate());
      } catch (error) {
        reject(error);
      }
    }, ms);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
