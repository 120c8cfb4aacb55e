/**
 * What api and worker are given of Node. Young objects have more room than by default, as those of a request live as long
 * as its model takes: where they do not fit, all of them are copied, and collected late. It costs some 60 MB a process.
 */
export const roleFlags: readonly string[] = ['--enable-source-maps', '--max-semi-space-size=32'];
