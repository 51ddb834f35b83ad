// A user's C++ program, built against an installed thole by consumer.sh. It needs no server.
#include <cstdio>
#include <thole/testing.h>
#include <thole/thole.hpp>

using namespace std::chrono_literals;

static const thole_slice activity = THOLE_STR_INIT("hello");

static thole_status greet(thole_ctx *ctx, thole_slice name, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, activity, name), ret_output);
}

static std::string hello(thole_activity *, std::string_view name)
{
    if (name == "nobody")
        throw thole::failure("empty", "there is nobody", true);
    if (name == "trouble")
        throw std::runtime_error("trouble");
    if (name == "cancelled")
        throw thole::cancelled();
    return "hello " + std::string(name);
}

static int bad;
static void expect(bool is, const char *what)
{
    if (!is)
        std::fprintf(stderr, "not so: %s\n", what), bad = 1;
}

template <typename F> static std::string thrown(F what, thole_status want)
{
    try {
        what();
    } catch (const thole::error &err) {
        expect(err.status() == want, err.what());
        return err.what();
    }
    return "nothing was thrown";
}

static std::string greeting(thole::program &program, const char *input, thole_instance_status want)
{
    thole_test_env *env = thole_test_create(program.get());
    thole_slice const id = THOLE_STR("greeting");
    expect(thole_test_start(env, id, THOLE_STR("greet"), thole::slice(input)) == THOLE_OK, "it starts");
    expect(thole_test_run(env, id) == want, input);
    std::string output(thole::view(thole_test_output(env, id)));
    thole_test_destroy(env);
    return output;
}

// What it does needs a server: integration.async. Here it compiles.
void ask_everything(thole::client &client)
{
    auto const ignore = [](const thole_completion &) {};
    thole::async async(client, 10);
    async.start("id", "greet", "world", ignore);
    async.signal("id", "event", "data", ignore);
    async.cancel("id", "reason", ignore);
    async.terminate("id", "reason", ignore);
    async.query("id", "query", "input", ignore);
    async.wait("id", 10ms, ignore);
    async.abandon(async.run("id", "greet", "world", 10ms, ignore));
    while (async.in_flight() > 0 && async.fd() >= 0)
        async.dispatch();
}

int main()
{
    thole::program program("consumer");
    program.orchestration("greet", greet).activity("hello", thole::handler<hello>);
    expect(greeting(program, "world", THOLE_INSTANCE_COMPLETED) == "hello world", "an output");
    expect(greeting(program, "nobody", THOLE_INSTANCE_FAILED) == "activity 'hello' failed: there is nobody",
           "a failure");
    expect(greeting(program, "trouble", THOLE_INSTANCE_FAILED) == "activity 'hello' failed: trouble",
           "an exception");

    thole_client_options away;
    thole_client_options_init(&away);
    away.nats_url = "nats://127.0.0.1:1";
    away.timeout_ms = 200;
    thrown([&] { thole::client client(&away); }, THOLE_UNAVAILABLE);
    std::string const typo = thrown([&] { thole::worker worker(program, {"--slotz=4"}); }, THOLE_INVALID);
    expect(typo == "there is no option --slotz; did you mean --slots?", typo.c_str());
    std::vector<std::string> const nowhere = {"--nats=nats://127.0.0.1:1",
                                              "--postgres=postgres://127.0.0.1:1/x", "--log-level=error"};
    thole::worker worker(program, nowhere);
    expect(!worker.wait(50ms), "it waits for its servers");
    expect(!worker.wait(-1ms), "time that is over is no time");
    expect(thole::wait_ms(-1ms) == 0 && thole::wait_ms(std::chrono::milliseconds::min()) == 0, "nothing");
    expect(thole::wait_ms(0ms) == 0 && thole::wait_ms(7s) == 7000, "seconds");
    {
        thole::engine engine(program, nowhere);
    }
    thole::worker moved(std::move(worker));
    moved.stop();
    moved.join();
    return bad;
}
