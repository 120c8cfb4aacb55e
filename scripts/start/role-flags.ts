/**
 * Node flags of api and worker. Objects of a request live as long as its model takes, so the young generation is
 * larger than by default. If they do not fit, all of them are copied and collected late. This costs some 60 MB per
 * process.
 */
export const roleFlags: readonly string[] = ['--enable-source-maps', '--max-semi-space-size=32'];
