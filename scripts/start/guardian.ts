import { spawn, type ChildProcess } from 'node:child_process';

/**
 * Waits for its stdin to close. Only the supervisor has the other end of this pipe, so the pipe closes when the
 * supervisor exits, even if the supervisor is killed. The script then ends the parts that are still running, in the
 * supervisor's order. It is a shell script because a shell takes one megabyte; a second Node process would take forty.
 */
const script = `
trap '' INT HUP TERM
stages=$STAGES
while read -r line; do stages=$line; done
is_any_alive() {
  for pid in $pids; do
    kill -0 "$pid" 2>/dev/null || continue
    # A zombie remains if nothing reaps it, as in some containers, but it has exited.
    case "$(cat "/proc/$pid/stat" 2>/dev/null)" in *') Z '*) continue ;; esac
    return 0
  done
  return 1
}
IFS=/
for pids in $stages; do
  IFS=' '
  for pid in $pids; do kill -TERM "$pid" 2>/dev/null; done
  tries=0
  while [ $tries -lt 50 ] && is_any_alive; do tries=$((tries + 1)); sleep 0.1; done
  for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
done
`;

const restartDelayMs = 200;

/** Lower stages are stopped first. */
export const stopStages = [0, 1, 2] as const;
export type StopStage = (typeof stopStages)[number];

/** Ends all parts if the supervisor is killed before it can do so. */
export class Guardian {
  #child: ChildProcess | null = null;
  #isStopping = false;
  readonly #running = new Map<string, { stage: StopStage; pid: number }>();

  start(): void {
    const startAgain = (): void => {
      if (!this.#isStopping) setTimeout(() => this.#restart(), restartDelayMs).unref();
    };
    try {
      this.#child = this.#spawn(startAgain);
    } catch {
      // The system may be temporarily out of memory.
      startAgain();
    }
  }

  /** Registers the process that a part runs as. Null means that it is not running. */
  watch(stage: StopStage, name: string, pid: number | null): void {
    if (pid === null) this.#running.delete(name);
    else this.#running.set(name, { stage, pid });
    this.#sendParts();
  }

  /** Stops the guardian after the supervisor has ended its parts itself. */
  stop(): void {
    this.#isStopping = true;
    // The guardian ignores other signals, because they may be sent to the whole process group.
    this.#child?.kill('SIGKILL');
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  #spawn(startAgain: () => void): ChildProcess {
    // Use a separate session, so that signals to the supervisor's process group do not reach it.
    const child = spawn('/bin/sh', ['-c', 'eval "$SCRIPT"', 'model-gateway-guardian'], {
      detached: true,
      // Pass the script in the environment, so that a process list shows a name instead of the script's text. Pass the
      // running parts, too, so that the guardian knows them from the start.
      env: { PATH: '/usr/bin:/bin', SCRIPT: script, STAGES: this.#describe() },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    // If the guardian is killed, the pipe fails with EPIPE. Ignore that, because its exit starts the next one. If the
    // system is out of file descriptors, there is no pipe.
    (child.stdin as typeof child.stdin | undefined)?.on('error', () => undefined);
    child.on('exit', startAgain);
    // The system may be temporarily out of processes or file descriptors. Without a listener, the error would crash the
    // supervisor.
    child.on('error', () => {
      if (child.pid === undefined) startAgain();
    });
    child.unref();
    return child;
  }

  #restart(): void {
    if (!this.#isStopping) this.start();
  }

  #sendParts(): void {
    this.#child?.stdin?.write(`${this.#describe()}\n`);
  }

  #describe(): string {
    const listPids = (requested: StopStage): string =>
      [...this.#running.values()].flatMap(({ stage, pid }) => (stage === requested ? [pid] : [])).join(' ');
    // A space represents a stage without parts.
    return stopStages.map((stage) => listPids(stage) || ' ').join('/');
  }
}
