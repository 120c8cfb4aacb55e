import { spawn, type ChildProcess } from 'node:child_process';

/**
 * Waits on its stdin, whose other end only the supervisor holds: however the supervisor ends, the pipe closes. It
 * then ends the parts that still run, in the supervisor's order. It is a shell because that takes one megabyte; a
 * second Node would take forty.
 */
const script = `
trap '' INT HUP TERM
stages=$STAGES
while read -r line; do stages=$line; done
is_any_alive() {
  for pid in $pids; do
    kill -0 "$pid" 2>/dev/null || continue
    # A zombie stays where nobody reaps it, as in some containers; it has ended all the same.
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

/** Lower stages end first. */
export const stopStages = [0, 1, 2] as const;
export type StopStage = (typeof stopStages)[number];

/** Ends every part if the supervisor is killed before it can do so itself. */
export class Guardian {
  #child: ChildProcess | null = null;
  #stopping = false;
  readonly #running = new Map<string, { stage: StopStage; pid: number }>();

  start(): void {
    const startAgain = (): void => {
      if (!this.#stopping) setTimeout(() => this.#restart(), restartDelayMs).unref();
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
    this.#tell();
  }

  /** Stops the guardian after the supervisor has ended its parts itself. */
  stop(): void {
    this.#stopping = true;
    // It ignores the gentler signals, which reach whole process groups.
    this.#child?.kill('SIGKILL');
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  #spawn(startAgain: () => void): ChildProcess {
    // A separate session: signals to the supervisor's process group must not reach it.
    const child = spawn('/bin/sh', ['-c', 'eval "$SCRIPT"', 'model-gateway-guardian'], {
      detached: true,
      // Passed in its environment, so that a process list shows a name instead of the program's text. The running
      // parts are passed as well, so that it knows them from the start.
      env: { PATH: '/usr/bin:/bin', SCRIPT: script, STAGES: this.#describe() },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    // If the guardian is killed, the pipe fails with EPIPE. Its exit is what matters, and that starts the next one.
    // If the system is out of file descriptors, there is no pipe.
    (child.stdin as typeof child.stdin | undefined)?.on('error', () => undefined);
    child.on('exit', startAgain);
    // The system may be temporarily out of processes or file descriptors. Without a listener, that would end the
    // supervisor.
    child.on('error', () => {
      if (child.pid === undefined) startAgain();
    });
    child.unref();
    return child;
  }

  #restart(): void {
    if (!this.#stopping) this.start();
  }

  #tell(): void {
    this.#child?.stdin?.write(`${this.#describe()}\n`);
  }

  #describe(): string {
    const ofStage = (wanted: StopStage): string =>
      [...this.#running.values()].flatMap(({ stage, pid }) => (stage === wanted ? [pid] : [])).join(' ');
    // A space stands for a stage without parts.
    return stopStages.map((stage) => ofStage(stage) || ' ').join('/');
  }
}
