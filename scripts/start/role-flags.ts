// decision 0024
/**
 * Node flags of api and worker. The objects of a request live until its model responds, so the young generation is
 * larger than by default. If they do not fit, all of them are copied to the old generation and collected late. This
 * takes about 60 MB per process.
 */
export const roleFlags: readonly string[] = ['--enable-source-maps', '--max-semi-space-size=32'];
